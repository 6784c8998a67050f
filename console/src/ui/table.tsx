import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { classes } from "./basics";

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

/** A click on a row that was not one on something in it. */
function rowClicked(event: JSX.TargetedMouseEvent<HTMLElement>, act: () => void): void {
	if (!(event.target as Element).closest("a, button, input, select, label") && !window.getSelection()?.toString()) act();
}

const rowHeight = 28;

/** A grid of any number of rows, of which only those in view are in the page. Cells are texts. */
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
	onCell?: (row: number, column: number) => void;
}) {
	const box = useRef<HTMLElement>(null);
	const [top, setTop] = useState(0);
	const first = Math.max(0, Math.floor(top / rowHeight) - 10);
	const last = Math.min(count, first + Math.ceil(height / rowHeight) + 20);
	return (
		<section
			ref={box}
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
							<th key={i} scope="col" class={c.number ? "number" : undefined}>
								{c.title} {c.detail && <small>{c.detail}</small>}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{first > 0 && <tr aria-hidden="true" style={{ height: `${first * rowHeight}px` }} />}
					{Array.from({ length: last - first }, (_, i) => first + i).map((row) => (
						<tr key={row} aria-rowindex={row + 2}>
							<td class="number row-number">{row + 1}</td>
							{columns.map((c, column) => (
								<td key={column} class={c.number ? "number" : undefined} onClick={onCell && (() => onCell(row, column))}>
									{cell(row, column)}
								</td>
							))}
						</tr>
					))}
					{last < count && <tr aria-hidden="true" style={{ height: `${(count - last) * rowHeight}px` }} />}
				</tbody>
			</table>
		</section>
	);
}

/** Buttons to the page before and after, with what is shown. */
export function Pager({
	offset,
	limit,
	count,
	more,
	onOffset,
}: {
	offset: number;
	limit: number;
	/** How many there are, where that is known. */
	count?: number;
	/** Whether there are more. */
	more: boolean;
	onOffset: (offset: number) => void;
}) {
	if (offset === 0 && !more) return null;
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
				{offset + 1}–{count === undefined ? offset + limit : Math.min(count, offset + limit)}
				{count !== undefined && ` of ${count.toLocaleString()}`}
			</span>
			<button type="button" class="button button-plain button-small" disabled={!more} onClick={() => onOffset(offset + limit)}>
				Next
			</button>
		</nav>
	);
}
