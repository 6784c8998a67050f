import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { aboutEvent, PersonLink } from "../../data/event";
import type { EventRow } from "../../data/events";
import { When } from "../../data/time";
import { classes } from "../../ui/basics";
import { inView, rowClicked, Spacer } from "../../ui/table";
import { isNew, type Tail, type TailRow } from "./tail";

const rowHeight = 34;
const headHeight = 30;

/** The events that were received. Only the rows in view are in the page; what somebody reads stays where it is when others come in above it. */
export function LiveRows({
	tail,
	onOpen,
	onKey,
}: {
	tail: Tail;
	onOpen: (row: EventRow) => void;
	/** Called for a key that is pressed in the list. */
	onKey: (event: KeyboardEvent) => void;
}) {
	const box = useRef<HTMLElement>(null);
	const [view, setView] = useState({ top: 0, height: 600 });
	const reading = useRef<{ key: string; top: number } | null>(null);
	const { rows } = tail;
	useLayoutEffect(() => {
		const element = box.current;
		if (!element) return;
		const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
		measure();
		const observer = new ResizeObserver(measure);
		observer.observe(element);
		return () => observer.disconnect();
	}, []);
	useLayoutEffect(() => {
		const element = box.current;
		const before = reading.current;
		if (element && before && element.scrollTop > 0) {
			const at = rows.findIndex((row) => row.key === before.key);
			if (at >= 0) element.scrollTop = at * rowHeight + before.top;
		}
		note();
	}, [rows]);
	/** Keeps which row is the first in view, and how far it is scrolled out. */
	const note = () => {
		const top = box.current?.scrollTop ?? 0;
		const row = rows[Math.floor(top / rowHeight)];
		reading.current = row ? { key: row.key, top: top % rowHeight } : null;
	};
	const { first, last } = inView(rows.length, view.top, view.height, rowHeight, 8);
	return (
		<section
			ref={box}
			class="table-box live-box card"
			aria-label="Events"
			tabIndex={0}
			onKeyDown={onKey}
			onScroll={(event) => {
				setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight });
				note();
			}}
		>
			<table class="table live-table" aria-rowcount={rows.length + 1}>
				<thead>
					<tr aria-rowindex={1} style={{ height: `${headHeight}px` }}>
						<th scope="col">Event</th>
						<th scope="col">Person</th>
						<th scope="col" class="extra">
							URL or screen
						</th>
						<th scope="col">Time</th>
						<th scope="col" class="extra">
							Arrived
						</th>
					</tr>
				</thead>
				<tbody>
					<Spacer rows={first} height={rowHeight} />
					{rows.slice(first, last).map((row, i) => (
						<Row key={row.key} row={row} index={first + i} fresh={isNew(tail, row)} onOpen={onOpen} />
					))}
					<Spacer rows={rows.length - last} height={rowHeight} />
				</tbody>
			</table>
		</section>
	);
}

function Row({ row, index, fresh, onOpen }: { row: TailRow; index: number; fresh: boolean; onOpen: (row: EventRow) => void }) {
	return (
		<tr
			aria-rowindex={index + 2}
			class={classes("clickable", fresh && "live-new")}
			data-uuid={row.uuid}
			style={{ height: `${rowHeight}px` }}
			onClick={(event) => rowClicked(event, () => onOpen(row))}
		>
			<td>
				<button type="button" class="data-open" onClick={() => onOpen(row)}>
					{row.event}
				</button>
				{fresh && <span class="visually-hidden"> new</span>}
			</td>
			<td>
				<PersonLink event={row} />
			</td>
			<td class="extra">{aboutEvent(row)}</td>
			<td>
				<When time={row.timestamp} />
			</td>
			<td class="extra">
				<When time={row.arrived} relative />
			</td>
		</tr>
	);
}
