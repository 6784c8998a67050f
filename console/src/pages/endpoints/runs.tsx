import { useState } from "preact/hooks";
import { get, type Page } from "../../api/client";
import { useResource, useSettled } from "../../api/use";
import { When } from "../../data/time";
import { Badge, Button, Card, Empty, Field, Loaded, Select, TextInput } from "../../ui/basics";
import { ago, duration, number } from "../../ui/format";
import { type Column, Pager, Table } from "../../ui/table";
import { pathOf, type Run } from "./api";
import type { TabProps } from "./endpoint";

const pageSize = 50;

const levels = [
	{ value: "", label: "All runs" },
	{ value: "INFO", label: "Answered" },
	{ value: "WARN", label: "Errors of callers" },
	{ value: "ERROR", label: "Errors of the server" },
] as const;

const columns: Column<Run>[] = [
	{
		name: "time",
		title: "Time",
		cell: (run) => (
			<>
				<When time={run.timestamp} /> ({ago(run.timestamp)})
			</>
		),
	},
	{
		name: "status",
		title: "Status",
		cell: (run) => <Badge tone={run.status < 400 ? "good" : run.status < 500 ? "warn" : "bad"}>{run.status}</Badge>,
	},
	{ name: "cache", title: "Cache", cell: (run) => run.cache ?? "–" },
	{ name: "duration", title: "Time taken", number: true, cell: (run) => duration(run.duration_ms / 1000) },
	{ name: "rows", title: "Rows", number: true, cell: (run) => (run.rows === null ? "–" : number(run.rows)) },
	{ name: "version", title: "Version", number: true, extra: true, cell: (run) => (run.version === null ? "–" : `v${run.version}`) },
	{ name: "error", title: "Error", extra: true, cell: (run) => run.error_code ?? "" },
	{ name: "execution", title: "Execution", extra: true, cell: (run) => run.instance_id && <code>{run.instance_id}</code> },
];

/** The last runs of an endpoint. */
export function RunsTab({ endpoint }: TabProps) {
	const [level, setLevel] = useState<(typeof levels)[number]["value"]>("");
	const [search, setSearch] = useState("");
	const [offset, setOffset] = useState(0);
	const settled = useSettled(search.trim());
	const runs = useResource(
		(signal) => get<Page<Run>>(pathOf(endpoint.name, "logs/"), { level, search: settled, limit: pageSize, offset }, signal),
		[endpoint.name, level, settled, offset],
	);
	return (
		<Card
			title="Recent runs"
			actions={
				<Button small onClick={runs.reload}>
					Refresh
				</Button>
			}
		>
			<p class="hint">
				The runs of the last 30 days. In very busy seconds only the newest are listed. Values of variables, and rows, are not kept.
			</p>
			<div class="endpoints-filters">
				<Field label="Which runs" hideLabel>
					{(id) => (
						<Select
							id={id}
							value={level}
							choices={levels}
							onValue={(wanted) => {
								setLevel(wanted);
								setOffset(0);
							}}
						/>
					)}
				</Field>
				<Field label="Search" hideLabel>
					{(id) => (
						<TextInput
							id={id}
							type="search"
							placeholder="cache=miss, version=2, …"
							value={search}
							onValue={(text) => {
								setSearch(text);
								setOffset(0);
							}}
						/>
					)}
				</Field>
			</div>
			<Loaded of={runs} rows={6}>
				{({ count, results }) =>
					results.length === 0 && offset === 0 ? (
						<Empty title={level || settled ? "No matching runs" : "No runs yet"} />
					) : (
						<>
							<Table label="Runs" columns={columns} rows={results} keyOf={(run, i) => `${run.timestamp}${i}`} />
							<Pager offset={offset} limit={pageSize} count={count} more={offset + results.length < count} onOffset={setOffset} />
						</>
					)
				}
			</Loaded>
		</Card>
	);
}
