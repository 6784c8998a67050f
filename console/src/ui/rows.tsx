import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { parse, stringify } from "../api/json";
import { Snippet } from "./basics";
import { Dialog } from "./dialog";
import { text } from "./format";
import { Grid } from "./table";

/** The rows of a result. A click on a cell opens its whole value, with `children` for its row. */
export function RowsGrid({
	label,
	columns,
	rows,
	height,
	children,
}: {
	label: string;
	columns: { title: string; number?: boolean; detail?: string }[];
	rows: readonly (readonly unknown[])[];
	/** Height of the view in pixels. */
	height?: number;
	children?: (row: number) => ComponentChildren;
}) {
	const [open, setOpen] = useState<{ row: number; column: number } | null>(null);
	return (
		<>
			<Grid
				label={label}
				columns={columns}
				count={rows.length}
				height={height}
				cell={(row, column) => text(rows[row]?.[column])}
				onCell={(row, column) => setOpen({ row, column })}
			/>
			{open && (
				<Dialog title={`${columns[open.column]?.title ?? "Value"}, row ${open.row + 1}`} onClose={() => setOpen(null)}>
					<div class="stack">
						<Snippet label="Value" text={pretty(rows[open.row]?.[open.column])} />
						{children?.(open.row)}
					</div>
				</Dialog>
			)}
		</>
	);
}

/** A value as it is read: JSON, also in a text, with a line for each member. */
export function pretty(value: unknown): string {
	if (typeof value === "string") {
		try {
			const read = parse(value);
			if (typeof read === "object" && read !== null) return stringify(read, 2);
		} catch {
			return value;
		}
		return value;
	}
	return stringify(value ?? null, 2);
}
