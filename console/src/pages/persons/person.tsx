import { useState } from "preact/hooks";
import { get } from "../../api/client";
import { stringify } from "../../api/json";
import { useResource } from "../../api/use";
import type { Filter, Wanted } from "../../data/events";
import { EventNameField } from "../../data/fields";
import { filled, PropertyFilters } from "../../data/filters";
import { EventList } from "../../data/list";
import { findPerson, nameOf, type Person } from "../../data/people";
import { LoadedPage } from "../../data/page";
import { When } from "../../data/time";
import { useSettledJSON } from "../../data/use";
import { Link, pageAddress } from "../../router";
import { can } from "../../session";
import { Badge, Card, CopyButton, Empty, Field, Loaded, PageHead, Snippet, Tabs } from "../../ui/basics";
import { number } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { Table } from "../../ui/table";
import { DeleteDialog, type Deleting } from "./delete";
import { PersonProperties } from "./properties";

type View = "events" | "properties" | "ids" | "cohorts" | "json";

/** One person, named by their UUID or a distinct id. */
export default function PersonPage({ id }: { id: string }) {
	const found = useResource((signal) => findPerson(id, signal), [id]);
	return (
		<LoadedPage of={found} title="Person">
			{(person) => <PersonDetails person={person} onChanged={found.reload} />}
		</LoadedPage>
	);
}

function PersonDetails({ person, onChanged }: { person: Person; onChanged: () => void }) {
	const [deleting, setDeleting] = useState<Deleting | null>(null);
	const [view, setView] = useState<View>(can("query:read") ? "events" : "properties");
	const choices: { value: View; label: string }[] = [
		...(can("query:read") ? [{ value: "events" as const, label: "Events" }] : []),
		{ value: "properties", label: `Properties (${number(Object.keys(person.properties).length)})` },
		{ value: "ids", label: `Distinct IDs (${number(person.distinct_ids.length)})` },
		...(can("cohort:read") ? [{ value: "cohorts" as const, label: "Cohorts" }] : []),
		{ value: "json", label: "JSON" },
	];
	return (
		<>
			<PageHead
				title={
					<>
						{nameOf(person)} {person.is_identified && <Badge tone="good">Identified</Badge>}
					</>
				}
				about={
					<>
						First seen <When time={person.created_at} />
						{person.last_seen_at !== undefined && (
							<>
								, last seen <When time={person.last_seen_at} />
							</>
						)}
					</>
				}
			>
				<CopyButton text={person.uuid} label="Copy UUID" small={false} />
				{can("person:write") && (
					<Menu
						label="More"
						items={[
							{ label: "Delete events…", danger: true, onSelect: () => setDeleting("events") },
							{ label: "Delete person…", danger: true, onSelect: () => setDeleting("person") },
						]}
					/>
				)}
			</PageHead>
			<Tabs label="Parts of the person" value={view} choices={choices} onValue={setView}>
				<Card>
					{view === "events" && <Timeline person={person} />}
					{view === "properties" && <PersonProperties person={person} onChanged={onChanged} />}
					{view === "ids" && (
						<ul class="data-list" aria-label="Distinct IDs">
							{person.distinct_ids.map((distinct) => (
								<li key={distinct}>
									<code>{distinct}</code>
								</li>
							))}
						</ul>
					)}
					{view === "cohorts" && <Cohorts person={person} />}
					{view === "json" && <Snippet text={stringify(person, 2)} label="The person as JSON" />}
				</Card>
			</Tabs>
			{deleting && <DeleteDialog person={person} what={deleting} onClose={() => setDeleting(null)} />}
		</>
	);
}

function Timeline({ person }: { person: Person }) {
	const [event, setEvent] = useState("");
	const [filters, setFilters] = useState<Filter[]>([]);
	const wanted = useSettledJSON<Wanted>({ personID: person.uuid, event, properties: filled(filters) });
	return (
		<div class="stack">
			<div class="data-bar">
				<Field label="Event">{(id) => <EventNameField id={id} value={event} onValue={setEvent} />}</Field>
			</div>
			<PropertyFilters filters={filters} onFilters={setFilters} label="Filters" events={event ? [event] : []} />
			<EventList wanted={wanted} person={false} label="Events of the person" empty="No matching events" />
		</div>
	);
}

interface CohortRow {
	id: number;
	name: string | null;
	count: number | null;
	is_static: boolean;
}

function Cohorts({ person }: { person: Person }) {
	const found = useResource(
		(signal) => get<{ results: CohortRow[] }>("persons/cohorts/", { person_id: person.uuid }, signal),
		[person.uuid],
	);
	return (
		<Loaded of={found}>
			{({ results }) =>
				results.length === 0 ? (
					<Empty title="In no cohort" />
				) : (
					<Table
						label="Cohorts of the person"
						rows={results}
						keyOf={(cohort) => cohort.id}
						columns={[
							{
								name: "name",
								title: "Cohort",
								cell: (cohort) => <Link to={pageAddress("cohorts", cohort.id)}>{cohort.name || `Cohort ${cohort.id}`}</Link>,
							},
							{ name: "kind", title: "Kind", cell: (cohort) => (cohort.is_static ? "Static" : "Dynamic") },
							{ name: "count", title: "People", number: true, cell: (cohort) => (cohort.count === null ? "–" : number(cohort.count)) },
						]}
					/>
				)
			}
		</Loaded>
	);
}
