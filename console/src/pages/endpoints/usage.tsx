import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Badge, Button, Card, Empty, Field, Loaded, Select } from "../../ui/basics";
import { ago, number } from "../../ui/format";
import { type Column, Table } from "../../ui/table";
import { type Span, spans, type UsageWindows } from "./api";
import { customerText, usedIn } from "./breakdown";
import type { TabProps } from "./endpoint";
import { milliseconds, share } from "./list";

/** The columns of numbers. */
function figures<T extends UsageWindows>(span: Span): Column<T>[] {
	const figure = (name: string, title: string, value: (row: T) => string, extra = false): Column<T> => ({
		name,
		title,
		number: true,
		extra,
		cell: value,
	});
	return [
		figure("calls", "Calls", (row) => number(row[span].calls)),
		figure("hits", "From cache", (row) => share(row[span].cache_hit_ratio), true),
		figure("p50", "p50", (row) => milliseconds(row[span].p50_ms), true),
		figure("p95", "p95", (row) => milliseconds(row[span].p95_ms)),
		figure("errors", "Errors", (row) => number(row[span].errors)),
		figure("limited", "Over a limit", (row) => number(row[span].rate_limited), true),
	];
}

/** Who and what took part in the runs of an endpoint. */
export function UsageTab({ usage }: TabProps) {
	const [span, setSpan] = useState<Span>("day");
	return (
		<div class="endpoints-stack">
			<div class="endpoints-filters">
				<Field label="Numbers of" hideLabel>
					{(id) => <Select id={id} value={span} choices={spans} onValue={setSpan} />}
				</Field>
				<Button small onClick={usage.reload}>
					Refresh
				</Button>
			</div>
			<Loaded of={usage} rows={8}>
				{({ versions, keys, customers }) => (
					<>
						<Part
							title="By version"
							none="No calls"
							span={span}
							rows={versions}
							keyOf={(v) => v.version}
							name={{
								title: "Version",
								cell: (v) => (
									<>
										v{v.version} {v.is_current && <Badge tone="good">Current</Badge>}
									</>
								),
							}}
							last={(v) => ago(v.last_executed_at)}
						/>
						<Part
							title="By key"
							none="No keys"
							span={span}
							rows={keys}
							keyOf={(k) => k.id}
							name={{
								title: "Key",
								cell: (k) => (
									<>
										{k.label || <code>{k.id}</code>} {k.label === null && <Badge>Deleted</Badge>}
									</>
								),
							}}
							most={100}
						/>
						<Part
							title="By customer"
							none="No customers"
							span={span}
							rows={customers}
							keyOf={(c) => customerText(c.variables)}
							name={{ title: "Customer", cell: (c) => <code>{customerText(c.variables)}</code> }}
							most={100}
						>
							A customer is what a key or token fixes in variables. Keys and customers are told apart where ClickHouse has a log of runs.
						</Part>
					</>
				)}
			</Loaded>
		</div>
	);
}

function Part<T extends UsageWindows>({
	title,
	none,
	span,
	rows,
	keyOf,
	name,
	last,
	most,
	children,
}: {
	title: string;
	/** What an empty part says that there is not. */
	none: string;
	span: Span;
	rows: T[];
	keyOf: (row: T) => string | number;
	name: Pick<Column<T>, "title" | "cell">;
	/** When it last ran, where that is known. */
	last?: (row: T) => string;
	/** How many the server gives at most. */
	most?: number;
	children?: ComponentChildren;
}) {
	const used = usedIn(rows, span);
	const columns = [{ name: "name", ...name }, ...figures<T>(span)];
	if (last) columns.push({ name: "last", title: "Last run", number: true, extra: true, cell: last });
	return (
		<Card title={title}>
			{children && <p class="hint">{children}</p>}
			{rows.length === most && <p class="hint">The {most} with the most calls of the last day.</p>}
			{used.length === 0 ? (
				<Empty title={`${none} in the last ${span}`} />
			) : (
				<Table label={title} columns={columns} rows={used} keyOf={keyOf} />
			)}
		</Card>
	);
}
