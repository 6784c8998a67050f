import { Pause, Play } from "lucide-preact";
import { useState } from "preact/hooks";
import { messageOf } from "../../api/client";
import { filled, PropertyFilters } from "../../data/filters";
import type { EventRow, Filter, Wanted } from "../../data/events";
import { EventDialog } from "../../data/event";
import { EventNameField } from "../../data/fields";
import { clock, projectZone } from "../../data/time";
import { useSettledJSON } from "../../data/use";
import { Button, Empty, Field, Loading, PageHead, Select, TextInput } from "../../ui/basics";
import { number } from "../../ui/format";
import { type Polling, useTail } from "./poll";
import { LiveRows } from "./rows";
import { most } from "./tail";

const ranges = [
	{ value: "-1h", label: "In the last hour" },
	{ value: "-24h", label: "In the last day" },
	{ value: "-7d", label: "In the last 7 days" },
	{ value: "all", label: "At any time" },
] as const;

/** The events as they arrive. */
export default function Live() {
	const [event, setEvent] = useState("");
	const [distinctID, setDistinctID] = useState("");
	const [properties, setProperties] = useState<Filter[]>([]);
	const [after, setAfter] = useState<(typeof ranges)[number]["value"]>("-24h");
	const [paused, setPaused] = useState(false);
	const [open, setOpen] = useState<EventRow | null>(null);
	const wanted: Wanted = useSettledJSON({ event, distinctID: distinctID.trim(), properties: filled(properties), after }, 400);
	const polling = useTail(wanted, paused);
	/** P pauses from the list and the button alone: elsewhere a single key may be part of what somebody dictates. */
	const pauses = (event: KeyboardEvent) => {
		if (event.key.toLowerCase() !== "p" || event.ctrlKey || event.metaKey || event.altKey) return;
		event.preventDefault();
		setPaused(!paused);
	};
	return (
		<>
			<PageHead title="Live events" about="The newest events, in the order in which they arrived.">
				<Button
					onClick={() => setPaused(!paused)}
					icon={paused ? <Play size={14} aria-hidden="true" /> : <Pause size={14} aria-hidden="true" />}
					onKeyDown={pauses}
					aria-keyshortcuts="P"
					title="P, here and in the list"
				>
					{paused ? "Resume" : "Pause"}
				</Button>
			</PageHead>
			<div class="live-filters">
				<Field label="Event">{(id) => <EventNameField id={id} value={event} onValue={setEvent} />}</Field>
				<Field label="Distinct ID">
					{(id) => <TextInput id={id} type="search" placeholder="Anybody" value={distinctID} onValue={setDistinctID} />}
				</Field>
				<Field label="Happened">{(id) => <Select id={id} value={after} choices={ranges} onValue={setAfter} />}</Field>
				<PropertyFilters filters={properties} onFilters={setProperties} label="Filters" events={event ? [event] : []} />
			</div>
			<Status polling={polling} paused={paused} />
			<Rows polling={polling} after={after} onAny={() => setAfter("all")} onOpen={setOpen} onKey={pauses} />
			{open && <EventDialog row={open} onClose={() => setOpen(null)} />}
		</>
	);
}

function Status({ polling: { tail, error, retryAt }, paused }: { polling: Polling; paused: boolean }) {
	const zone = projectZone();
	if (error !== undefined) {
		return (
			<div class="failure" role="alert">
				<p>
					{messageOf(error)}
					{retryAt !== null && !paused && ` The next try is at ${clock(new Date(retryAt).toISOString(), zone).slice(11)}.`}
				</p>
			</div>
		);
	}
	return (
		<p class="live-status" role="status">
			<span class={paused ? "live-dot" : "live-dot live-dot-on"} aria-hidden="true" />
			{paused ? "Paused" : "Live"}
			{tail.asOf !== null && ` · ${number(tail.rows.length)} shown · ${number(tail.received)} new`}
			{tail.rows.length >= most && ` · only the newest ${number(most)} are kept`}
		</p>
	);
}

function Rows({
	polling: { tail, error },
	after,
	onAny,
	onOpen,
	onKey,
}: {
	polling: Polling;
	after: string;
	onAny: () => void;
	onOpen: (row: EventRow) => void;
	onKey: (event: KeyboardEvent) => void;
}) {
	if (tail.rows.length > 0) return <LiveRows tail={tail} onOpen={onOpen} onKey={onKey} />;
	if (tail.asOf === null) return error === undefined ? <Loading rows={6} /> : null;
	return (
		<Empty title="No events yet">
			<p>New ones appear here within about two seconds.</p>
			{after !== "all" && (
				<div class="actions">
					<Button onClick={onAny}>Show older events</Button>
				</div>
			)}
		</Empty>
	);
}
