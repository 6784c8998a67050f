import { useMemo, useState } from "preact/hooks";
import { stringify } from "../api/json";
import { useResource } from "../api/use";
import { Link, pageAddress } from "../router";
import { can } from "../session";
import { Empty, Loaded, Snippet, Tabs } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { parseElements, tagOf } from "./elements";
import { type EventRow, type FullEvent, fullEvent } from "./events";
import { PropertyTable } from "./properties";
import { When } from "./time";

/** The link to the person of an event; a text for keys that may not see people. */
export function PersonLink({ event }: { event: { personID: string | null; distinctID: string } }) {
	const { personID, distinctID } = event;
	if (!can("person:read")) return <>{distinctID}</>;
	return <Link to={pageAddress("person", personID ?? distinctID)}>{distinctID}</Link>;
}

/** What an event is about: its address, or its screen. */
export const aboutEvent = (row: EventRow): string => row.url ?? row.screen ?? "";

/** All of an event at the side of the page. */
export function EventDialog({ row, onClose }: { row: Pick<EventRow, "uuid" | "event" | "timestamp">; onClose: () => void }) {
	const found = useResource((signal) => fullEvent(row, signal), [row.uuid]);
	return (
		<Dialog title={row.event} onClose={onClose} side>
			<Loaded of={found}>{(event) => (event ? <Details event={event} /> : <Empty title="This event no longer exists" />)}</Loaded>
		</Dialog>
	);
}

type View = "properties" | "person" | "elements" | "json";

function Details({ event }: { event: FullEvent }) {
	const [view, setView] = useState<View>("properties");
	const elements = useMemo(() => parseElements(event.elements_chain), [event.elements_chain]);
	const choices: { value: View; label: string }[] = [
		{ value: "properties", label: `Properties (${Object.keys(event.properties).length})` },
		{ value: "person", label: "Person" },
		...(elements.length ? [{ value: "elements" as const, label: `Elements (${elements.length})` }] : []),
		{ value: "json", label: "JSON" },
	];
	return (
		<div class="stack">
			<dl class="data-facts">
				<dt>Time</dt>
				<dd>
					<When time={event.timestamp} />
				</dd>
				<dt>Arrived</dt>
				<dd>
					<When time={event.created_at} />
				</dd>
				<dt>Person</dt>
				<dd>
					<PersonLink event={{ personID: event.person?.uuid ?? null, distinctID: event.distinct_id }} />
				</dd>
				<dt>UUID</dt>
				<dd>
					<code>{event.uuid}</code>
				</dd>
			</dl>
			<div>
				<Tabs label="Parts of the event" value={view} choices={choices} onValue={setView}>
					{view === "properties" && <PropertyTable properties={event.properties} label="Properties of the event" />}
					{view === "person" && <PersonOfEvent event={event} />}
					{view === "elements" && (
						<ol class="data-elements">
							{elements.map((element, i) => (
								<li key={i}>
									<code>{tagOf(element)}</code>
									{element.text && <span> {element.text}</span>}
								</li>
							))}
						</ol>
					)}
					{view === "json" && <Snippet text={stringify(event, 2)} label="The event as JSON" />}
				</Tabs>
			</div>
		</div>
	);
}

function PersonOfEvent({ event }: { event: FullEvent }) {
	if (!event.person) return <p class="hint">The event has no person: it was sent without a profile.</p>;
	return (
		<div class="stack">
			<p class="hint">The person’s properties at the time of the event.</p>
			<PropertyTable properties={event.person.properties} label="Properties of the person" />
		</div>
	);
}
