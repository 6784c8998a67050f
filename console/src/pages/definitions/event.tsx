import { useState } from "preact/hooks";
import { get } from "../../api/client";
import { type Resource, useResource } from "../../api/use";
import { EditDefinition, Marks, Tags } from "../../data/definition";
import { type EventDefinition, propertyDefinitions, typeName } from "../../data/definitions";
import type { Wanted } from "../../data/events";
import { EventList } from "../../data/list";
import { useOffset } from "../../data/paged";
import { When } from "../../data/time";
import { LoadedPage } from "../../data/page";
import { addressOfQuery, firstQuery } from "../../insights/model";
import { Link, pageAddress } from "../../router";
import { can } from "../../session";
import { Button, Card, Empty, Loaded, PageHead } from "../../ui/basics";
import { Pager, Table } from "../../ui/table";

/** One event: what it means, its properties, and some that occurred. */
export default function EventPage({ id }: { id: string }) {
	const found = useResource((signal) => get<EventDefinition>(`event_definitions/${encodeURIComponent(id)}/`, {}, signal), [id]);
	return (
		<LoadedPage of={found} title="Event">
			{(definition) => <EventDetails definition={definition} of={found} />}
		</LoadedPage>
	);
}

function EventDetails({ definition, of }: { definition: EventDefinition; of: Resource<EventDefinition> }) {
	const [editing, setEditing] = useState(false);
	return (
		<>
			<PageHead
				title={
					<>
						{definition.name} <Marks definition={definition} />
					</>
				}
				about={
					<>
						First seen <When time={definition.created_at} />, last seen <When time={definition.last_seen_at} />
					</>
				}
			>
				{can("event_definition:write") && <Button onClick={() => setEditing(true)}>Edit</Button>}
				{can("query:read") && (
					<Link class="button button-primary" to={insightOf(definition.name)}>
						Use in an insight
					</Link>
				)}
			</PageHead>
			<div class="stack">
				{(definition.description || definition.tags.length > 0) && (
					<Card>
						<div class="stack">
							{definition.description && <p class="data-lines">{definition.description}</p>}
							<Tags tags={definition.tags} />
						</div>
					</Card>
				)}
				{can("property_definition:read") && (
					<Card title="Properties">
						<EventProperties event={definition.name} />
					</Card>
				)}
				{can("query:read") && (
					<Card title="Recent events">
						<EventList wanted={recent(definition)} limit={10} label="Recent events" />
					</Card>
				)}
			</div>
			{editing && <EditDefinition path="event_definitions/" definition={definition} onChanged={of.set} onClose={() => setEditing(false)} />}
		</>
	);
}

/** The address of a new insight that counts an event. */
function insightOf(event: string): string {
	return pageAddress("insights", "new") + addressOfQuery({ ...firstQuery, series: [{ kind: "EventsNode", event, math: "total" }] });
}

/** The event as it occurred last. The week before is enough, and is read fast. */
function recent(definition: EventDefinition): Wanted {
	const last = Date.parse(definition.last_seen_at ?? "");
	return { event: definition.name, after: Number.isNaN(last) ? "-7d" : new Date(last - 7 * 86_400_000).toISOString() };
}

const limit = 50;

function EventProperties({ event }: { event: string }) {
	const [offset, setOffset] = useOffset(event);
	const found = useResource((signal) => propertyDefinitions({ type: "event", event, limit, offset }, signal), [event, offset]);
	return (
		<Loaded of={found}>
			{({ results, next, count }) =>
				results.length === 0 ? (
					<Empty title="No properties" />
				) : (
					<>
						<Table
							label="Properties of the event"
							rows={results}
							keyOf={(property) => property.id}
							columns={[
								{
									name: "name",
									title: "Property",
									cell: (property) => (
										<Link to={`${pageAddress("data-management", "properties", property.id)}?type=event`}>{property.name}</Link>
									),
								},
								{ name: "type", title: "Type", cell: (property) => typeName(property.property_type) },
								{ name: "description", title: "Description", extra: true, cell: (property) => property.description },
							]}
						/>
						<Pager offset={offset} limit={limit} count={count} more={next !== null} onOffset={setOffset} />
					</>
				)
			}
		</Loaded>
	);
}
