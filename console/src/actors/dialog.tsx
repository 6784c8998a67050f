import { useState } from "preact/hooks";
import { post } from "../api/client";
import { ask } from "../api/query";
import { useResource, useSettled } from "../api/use";
import type { Behind } from "../charts/chart";
import { When } from "../data/time";
import { Link, pageAddress } from "../router";
import { can } from "../session";
import { Button, CopyButton, Empty, Field, Loaded, Tabs, TextInput } from "../ui/basics";
import { attempt, Dialog, toast } from "../ui/dialog";
import { csv } from "../ui/csv";
import { FormDialog } from "../ui/form-dialog";
import { counted, number, text } from "../ui/format";
import { type Column, Pager, Table } from "../ui/table";
import { type ActorRow, actorsCSV, cohortQuery, countActors, isGroup, listsEvents, loadActors, mostRows, nameOf, pageSize } from "./actors";

/** Shows who or what is behind a number. */
export function BehindDialog({ behind, onClose }: { behind: Behind; onClose: () => void }) {
	const [view, setView] = useState<"actors" | "events">("actors");
	const shown = view === "actors" ? <Actors behind={behind} /> : <Events behind={behind} />;
	return (
		<Dialog title={behind.title} onClose={onClose} side>
			{listsEvents(behind.source) ? (
				<Tabs
					label="What is listed"
					value={view}
					onValue={setView}
					choices={[
						{ value: "actors", label: "Who" },
						{ value: "events", label: "Events" },
					]}
				>
					{shown}
				</Tabs>
			) : (
				shown
			)}
		</Dialog>
	);
}

function Actors({ behind }: { behind: Behind }) {
	const { source } = behind;
	const [search, setSearch] = useState("");
	const [offset, setOffset] = useState(0);
	const [saving, setSaving] = useState(false);
	const wanted = useSettled(search.trim(), 300);
	const page = useResource((signal) => loadActors(source, { search: wanted, offset }, signal), [source, wanted, offset]);
	const count = useResource((signal) => countActors(source, wanted, signal), [source, wanted]);
	const groups = page.data?.rows.some((row) => isGroup(row.actor)) ?? false;
	return (
		<div class="stack">
			<div class="actors-head">
				<p class="actors-count" aria-live="polite">
					{count.data !== undefined && !count.loading
						? groups
							? counted(count.data, "group")
							: counted(count.data, "person", "people")
						: " "}
				</p>
				<div class="actions">
					<CopyButton label="Copy as CSV" text={() => copyActors(behind, wanted)} />
					{!groups && can("cohort:write") && (
						<Button small disabled={!count.data} onClick={() => setSaving(true)}>
							Save as cohort
						</Button>
					)}
				</div>
			</div>
			<TextInput
				type="search"
				aria-label="Search"
				placeholder="Part of an email, a name or an ID"
				value={search}
				onValue={(value) => {
					setSearch(value);
					setOffset(0);
				}}
			/>
			<Loaded of={page} rows={8}>
				{({ rows, more }) =>
					rows.length === 0 && offset === 0 ? (
						<Empty title={wanted ? "Nobody is called that" : "There is nobody behind this number"} />
					) : (
						<>
							<Table label="Who is behind the number" columns={columns(rows)} rows={rows} keyOf={(row) => row.actor.id} />
							<Pager offset={offset} limit={pageSize} count={count.data} more={more} onOffset={setOffset} />
						</>
					)
				}
			</Loaded>
			{saving && <SaveCohort behind={behind} search={wanted} onClose={() => setSaving(false)} />}
		</div>
	);
}

function columns(rows: ActorRow[]): Column<ActorRow>[] {
	const all: Column<ActorRow>[] = [
		{
			name: "name",
			title: "Name",
			cell: ({ actor }) => (isGroup(actor) ? nameOf(actor) : <Link to={pageAddress("person", actor.id)}>{nameOf(actor)}</Link>),
		},
		{
			name: "id",
			title: "Distinct ID",
			extra: true,
			cell: ({ actor }) => <code>{isGroup(actor) ? (actor.group_key ?? actor.id) : (actor.distinct_ids?.[0] ?? actor.id)}</code>,
		},
	];
	if (rows.some((row) => row.events !== null)) {
		all.push({ name: "events", title: "Events", number: true, cell: (row) => (row.events === null ? "" : number(row.events)) });
	}
	return all;
}

async function copyActors(behind: Behind, search: string): Promise<string> {
	const { rows, more } = await loadActors(behind.source, { search, limit: mostRows });
	if (more) toast(`Only the first ${number(mostRows)} were copied.`, { bad: true });
	return actorsCSV(rows);
}

function SaveCohort({ behind, search, onClose }: { behind: Behind; search: string; onClose: () => void }) {
	const [name, setName] = useState(behind.title);
	const save = async () => {
		await post("cohorts/", { name: name.trim(), is_static: true, query: cohortQuery(behind.source, search) });
		toast("The cohort was saved. Its members are being added.");
	};
	return (
		<FormDialog title="Save as cohort" action="Save" onSubmit={save} onClose={onClose}>
			<Field
				label="Name"
				hint={`A static cohort: ${search ? "the people who are found" : "these people"} stay in it until they are taken out.`}
			>
				{(id) => <TextInput id={id} value={name} onValue={setName} required maxLength={400} />}
			</Field>
		</FormDialog>
	);
}

/** An event behind a number. */
interface EventRow {
	uuid: string;
	event: string;
	distinct_id: string;
	timestamp: string;
}

const eventColumns = ["uuid", "event", "distinct_id", "timestamp"];

function Events({ behind }: { behind: Behind }) {
	const [offset, setOffset] = useState(0);
	const load = async (from: number, limit: number, signal?: AbortSignal) => {
		const query = { kind: "EventsQuery", select: eventColumns, source: behind.source, after: "all", limit, offset: from };
		const { data } = await ask<unknown[][]>(query, { signal });
		const rows = data.results.map((row) => Object.fromEntries(eventColumns.map((name, i) => [name, text(row[i])])) as unknown as EventRow);
		return { rows, more: data.hasMore === true };
	};
	const page = useResource((signal) => load(offset, pageSize, signal), [behind.source, offset]);
	const copy = async () => {
		const { rows, more } = await load(0, mostRows);
		if (more) await attempt(async () => toast(`Only the first ${number(mostRows)} were copied.`, { bad: true }));
		return csv(
			eventColumns,
			rows.map((row) => [row.uuid, row.event, row.distinct_id, row.timestamp]),
		);
	};
	const shown: Column<EventRow>[] = [
		{ name: "event", title: "Event", cell: (row) => row.event },
		{ name: "person", title: "Distinct ID", cell: (row) => <Link to={pageAddress("person", row.distinct_id)}>{row.distinct_id}</Link> },
		{
			name: "time",
			title: "Time",
			cell: (row) => <When time={row.timestamp} />,
		},
	];
	return (
		<div class="stack">
			<div class="actors-head">
				<p class="hint">Newest first.</p>
				<CopyButton label="Copy as CSV" text={copy} />
			</div>
			<Loaded of={page} rows={8}>
				{({ rows, more }) =>
					rows.length === 0 && offset === 0 ? (
						<Empty title="There are no events behind this number" />
					) : (
						<>
							<Table label="Events behind the number" columns={shown} rows={rows} keyOf={(row) => row.uuid} />
							<Pager offset={offset} limit={pageSize} shown={rows.length} more={more} onOffset={setOffset} />
						</>
					)
				}
			</Loaded>
		</div>
	);
}
