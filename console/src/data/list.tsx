import { useState } from "preact/hooks";
import { stringify } from "../api/json";
import { useResource } from "../api/use";
import { Empty, Loaded } from "../ui/basics";
import { type Column, Pager, Table } from "../ui/table";
import { aboutEvent, EventDialog, PersonLink } from "./event";
import { type EventRow, listEvents, type Wanted } from "./events";
import { useOffset } from "./paged";
import { When } from "./time";

/** A list of events with pages, the newest first. A click shows all of an event. New ones don't move what is on a page. */
export function EventList({
	wanted,
	limit = 50,
	person = true,
	empty = "No events",
	label = "Events",
}: {
	wanted: Wanted;
	limit?: number;
	/** Whether a column names the person. */
	person?: boolean;
	empty?: string;
	label?: string;
}) {
	const [open, setOpen] = useState<EventRow | null>(null);
	const key = stringify(wanted);
	const [before] = useState(later);
	const [offset, setOffset] = useOffset(key);
	const found = useResource(
		(signal) => listEvents({ ...wanted, before: wanted.before ?? before }, { limit, offset, signal }),
		[key, offset, limit, before],
	);
	const columns: Column<EventRow>[] = [
		{
			name: "event",
			title: "Event",
			cell: (row) => (
				<button type="button" class="data-open" onClick={() => setOpen(row)}>
					{row.event}
				</button>
			),
		},
		...(person ? [{ name: "person", title: "Person", cell: (row: EventRow) => <PersonLink event={row} /> }] : []),
		{ name: "about", title: "URL or screen", extra: true, cell: (row) => <span class="data-about">{aboutEvent(row)}</span> },
		{ name: "time", title: "Time", cell: (row) => <When time={row.timestamp} /> },
	];
	return (
		<>
			<Loaded of={found}>
				{({ rows, more }) =>
					rows.length === 0 && offset === 0 ? (
						<Empty title={empty} />
					) : (
						<>
							<Table label={label} columns={columns} rows={rows} keyOf={(row) => `${row.uuid}${row.event}`} onRow={setOpen} />
							<Pager offset={offset} limit={limit} shown={rows.length} more={more} onOffset={setOffset} />
						</>
					)
				}
			</Loaded>
			{open && <EventDialog row={open} onClose={() => setOpen(null)} />}
		</>
	);
}

/** A day from now: clocks of clients may be ahead. */
function later(): string {
	return new Date(Date.now() + 86_400_000).toISOString();
}
