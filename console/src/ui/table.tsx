import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { classes } from "./basics";
import { number } from "./format";

/** One column of a table. */
export interface Column<T> {
	name: string;
	title: ComponentChildren;
	cell: (row: T, index: number) => ComponentChildren;
	/** Right-aligned, with digits of one width. */
	number?: boolean;
	/** Left out in narrow windows. */
	extra?: boolean;
}

/** A table of at most a few hundred rows. */
export function Table<T>({
	columns,
	rows,
	keyOf,
	label,
	onRow,
}: {
	columns: Column<T>[];
	rows: readonly T[];
	keyOf: (row: T, index: number) => string | number;
	/** What the table holds, for screen readers. */
	label: string;
	/** Makes rows clickable. Give a cell a link to the same, for the keyboard. */
	onRow?: (row: T) => void;
}) {
	return (
		<section class="table-box" tabIndex={0} aria-label={label}>
			<table class="table">
				<thead>
					<tr>
						{columns.map((c) => (
							<th key={c.name} scope="col" class={classes(c.number && "number", c.extra && "extra")}>
								{c.title}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{rows.map((row, i) => (
						<tr key={keyOf(row, i)} class={onRow && "clickable"} onClick={onRow && ((event) => rowClicked(event, () => onRow(row)))}>
							{columns.map((c) => (
								<td key={c.name} class={classes(c.number && "number", c.extra && "extra")}>
									{c.cell(row, i)}
								</td>
							))}
						</tr>
					))}
				</tbody>
			</table>
		</section>
	);
}

/** A click on a row that was not one on something in it, and did not select text. */
export function rowClicked(event: JSX.TargetedMouseEvent<HTMLElement>, act: () => void): void {
	if (!(event.target as Element).closest("a, button, input, select, label") && !window.getSelection()?.toString()) act();
}

/** Which rows of a list are to be in the page: those in view and `around` more on either side. Rows that are gone are not in view. */
export function inView(count: number, top: number, height: number, row: number, around: number): { first: number; last: number } {
	const first = Math.max(0, Math.min(count, Math.floor(top / row)) - around);
	return { first, last: Math.min(count, Math.ceil((top + height) / row) + around) };
}

/** The place of rows that are not in the page. */
export function Spacer({ rows, height }: { rows: number; height: number }) {
	return rows > 0 ? <tr aria-hidden="true" style={{ height: `${rows * height}px` }} /> : null;
}

/** The most characters of a value that are in the page before it is opened. More are never in view. */
const mostOfCell = 500;

/** How a value is shown in a cell: its beginning, and the tooltip of one that may be wider than its column. */
export function cellText(text: string): { shown: string; title?: string } {
	const shown = text.length > mostOfCell ? `${text.slice(0, mostOfCell)}…` : text;
	return shown.length > 30 ? { shown, title: shown } : { shown };
}

const rowHeight = 28;

const steps: Record<string, readonly [number, number]> = {
	ArrowUp: [-1, 0],
	ArrowDown: [1, 0],
	ArrowLeft: [0, -1],
	ArrowRight: [0, 1],
};

/**
 * A grid of any number of rows, of which only those in view are in the page. Cells are buttons that open their values, of which one is
 * reached with Tab and the others with the arrow keys.
 */
export function Grid({
	columns,
	count,
	cell,
	label,
	height = 480,
	onCell,
}: {
	columns: { title: string; number?: boolean; detail?: string }[];
	count: number;
	cell: (row: number, column: number) => string;
	label: string;
	/** Height of the view in pixels. */
	height?: number;
	onCell: (row: number, column: number) => void;
}) {
	const [top, setTop] = useState(0);
	const [at, setAt] = useState({ row: 0, column: 0 });
	const { first, last } = inView(count, top, height, rowHeight, 10);
	/** The cell that the Tab key reaches; arrows go on from it. */
	const stop = { row: Math.max(first, Math.min(at.row, last - 1)), column: Math.min(at.column, columns.length - 1) };
	const move = (event: JSX.TargetedKeyboardEvent<HTMLElement>) => {
		const step = steps[event.key];
		if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
		event.preventDefault();
		const row = Math.max(0, Math.min(count - 1, stop.row + step[0]));
		const column = Math.max(0, Math.min(columns.length - 1, stop.column + step[1]));
		event.currentTarget.querySelector<HTMLElement>(`[data-cell="${row} ${column}"]`)?.focus();
	};
	return (
		<section
			class="table-box grid"
			aria-label={label}
			tabIndex={0}
			style={{ maxHeight: `${height}px` }}
			onScroll={(event) => setTop(event.currentTarget.scrollTop)}
		>
			<table class="table" aria-rowcount={count + 1}>
				<thead>
					<tr aria-rowindex={1}>
						<th class="number row-number" scope="col">
							<span class="visually-hidden">Row</span>
						</th>
						{columns.map((c, i) => (
							<th key={i} scope="col" class={c.number ? "number" : undefined} title={cellText(c.title).title}>
								{c.title} {c.detail && <small>{c.detail}</small>}
							</th>
						))}
					</tr>
				</thead>
				<tbody onKeyDown={move}>
					<Spacer rows={first} height={rowHeight} />
					{Array.from({ length: last - first }, (_, i) => first + i).map((row) => (
						<tr key={row} aria-rowindex={row + 2}>
							<td class="number row-number">{row + 1}</td>
							{columns.map((c, column) => (
								<td key={column} class={c.number ? "number" : undefined}>
									<CellButton
										text={cell(row, column)}
										place={`${row} ${column}`}
										stop={stop.row === row && stop.column === column}
										onFocus={() => setAt({ row, column })}
										onClick={() => onCell(row, column)}
									/>
								</td>
							))}
						</tr>
					))}
					<Spacer rows={count - last} height={rowHeight} />
				</tbody>
			</table>
		</section>
	);
}

function CellButton({
	text,
	place,
	stop,
	...acts
}: {
	text: string;
	place: string;
	stop: boolean;
	onFocus: () => void;
	onClick: () => void;
}) {
	const { shown, title } = cellText(text);
	return (
		<button
			type="button"
			class="grid-cell"
			title={title}
			data-cell={place}
			tabIndex={stop ? 0 : -1}
			aria-label={text.trim() === "" ? "Empty" : undefined}
			{...acts}
		>
			{shown}
		</button>
	);
}

/** Buttons to the page before and after, with what is shown. */
export function Pager({
	offset,
	limit,
	count,
	shown,
	more,
	onOffset,
}: {
	offset: number;
	limit: number;
	/** How many there are, where that is known. */
	count?: number;
	/** How many the page has, where it may have fewer than `limit`. */
	shown?: number;
	/** Whether there are more. */
	more: boolean;
	onOffset: (offset: number) => void;
}) {
	if (offset === 0 && !more) return null;
	const last = Math.min(offset + (shown ?? limit), count ?? Number.POSITIVE_INFINITY);
	return (
		<nav class="pager" aria-label="Pages">
			<button
				type="button"
				class="button button-plain button-small"
				disabled={offset === 0}
				onClick={() => onOffset(Math.max(0, offset - limit))}
			>
				Previous
			</button>
			<span>
				{last > offset ? `${number(offset + 1)}–${number(last)}` : "None"}
				{count !== undefined && ` of ${number(count)}`}
			</span>
			<button type="button" class="button button-plain button-small" disabled={!more} onClick={() => onOffset(offset + limit)}>
				Next
			</button>
		</nav>
	);
}
