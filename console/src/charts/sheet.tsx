import { useState } from "preact/hooks";
import { classes } from "../ui/basics";
import { cellText, inView, Spacer } from "../ui/table";
import type { Behind, Cell, Sheet } from "./model";

/** The text of a cell, as a button if there is something behind it. */
export function CellText({ cell, onBehind, hint }: { cell: Cell; onBehind?: (behind: Behind) => void; hint?: string }) {
	const { behind } = cell;
	if (!behind || !onBehind || cell.text === "") return <>{cell.text}</>;
	return (
		<button type="button" class="chart-number" title={hint} onClick={() => onBehind(behind())}>
			{cell.text}
		</button>
	);
}

const rowHeight = 31;
const fewRows = 150;

/** The numbers of a chart. Of a long table only the rows in view are in the page. */
export function SheetView({
	sheet,
	label,
	height,
	onBehind,
}: {
	sheet: Sheet;
	label: string;
	height: number;
	onBehind?: (behind: Behind) => void;
}) {
	const [top, setTop] = useState(0);
	const count = sheet.rows.length;
	const long = count > fewRows;
	const { first, last } = long ? inView(count, top, height, rowHeight, 15) : { first: 0, last: count };
	return (
		<section
			class={classes("table-box", "chart-sheet", long && "chart-sheet-long")}
			tabIndex={0}
			aria-label={label}
			style={{ maxHeight: `${height}px` }}
			onScroll={long ? (event) => setTop(event.currentTarget.scrollTop) : undefined}
		>
			<table class="table" aria-rowcount={long ? count + 1 : undefined}>
				<thead>
					<tr>
						{sheet.columns.map((c, i) => (
							<th key={i} scope="col" class={c.number ? "number" : undefined}>
								{c.title}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					<Spacer rows={first} height={rowHeight} />
					{sheet.rows.slice(first, last).map((row, i) => (
						<tr key={first + i} aria-rowindex={long ? first + i + 2 : undefined}>
							{row.map((cell, column) => (
								<td
									key={column}
									class={sheet.columns[column]?.number ? "number" : undefined}
									title={long ? cellText(cell.text).title : undefined}
								>
									<CellText cell={cell} onBehind={onBehind} />
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
