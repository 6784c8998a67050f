import { lazy, Suspense } from "preact/compat";
import { useState } from "preact/hooks";
import type { Answer } from "../../api/client";
import { stringify } from "../../api/json";
import { ask, isNumeric, type QueryNode, type QueryResult, typesOf } from "../../api/query";
import { useResource } from "../../api/use";
import type { ResultSettings } from "../../charts/options/result";
import { cutOf } from "../../sql/limits";
import { Button, CopyButton, Empty, Loaded, Loading, Snippet, Tabs } from "../../ui/basics";
import { csv, download } from "../../ui/csv";
import { counted, duration } from "../../ui/format";
import { RowsGrid } from "../../ui/rows";

export type Rows = unknown[][];

/** A result with the query that it is of. */
export interface Ran extends Answer<QueryResult<Rows>> {
	asked: QueryNode;
}

/** The rows of a query without a LIMIT. */
const defaultRows = 100;

type View = "rows" | "chart" | "plan" | "timings";

const ResultChart = lazy(async () => (await import("../../charts/result")).ResultChart);

/** The result of a query: its rows, how ClickHouse reads them, and where the time went. */
export function Results({
	answer,
	onMore,
	settings,
	onSettings,
}: {
	answer: Ran;
	/** Asks for more rows than a query without a LIMIT has. */
	onMore?: () => void;
	/** How the rows are drawn. */
	settings: ResultSettings;
	onSettings: (settings: ResultSettings) => void;
}) {
	const [view, setView] = useState<View>(settings.display ? "chart" : "rows");
	const { data, headers, asked } = answer;
	const types = typesOf(data.types, data.columns?.length ?? 0);
	const columns = (data.columns ?? []).map((title, i) => ({ title, detail: types[i], number: isNumeric(types[i] ?? "") }));
	const cut = data.hasMore === null && data.results.length >= defaultRows ? cutOf(String(asked.query ?? "")) : undefined;
	return (
		<section class="sql-results" aria-label="Result">
			<div class="sql-summary">
				<p role="status">
					{counted(data.results.length, "row")}
					{data.hasMore && " (there are more)"} in {duration(headers.elapsed / 1000)}
				</p>
				{data.hasMore && onMore && (
					<Button small onClick={onMore}>
						Show up to 50,000
					</Button>
				)}
				<Button
					small
					disabled={data.results.length === 0}
					onClick={() => download("result.csv", csv(data.columns ?? [], data.results), "text/csv")}
				>
					Download CSV
				</Button>
			</div>
			{cut && (
				<p class="notice">
					{cut === "parts"
						? `Each part without a LIMIT has at most ${defaultRows} rows.`
						: `The result has at most ${defaultRows} rows. Put the query in parentheses and write a LIMIT after it.`}
				</p>
			)}
			{data.warnings?.map((w) => (
				<p key={w.message} class="notice">
					{w.message}
				</p>
			))}
			<Tabs
				label="Views of the result"
				value={view}
				onValue={setView}
				choices={[
					{ value: "rows", label: "Rows" },
					{ value: "chart", label: "Chart" },
					{ value: "plan", label: "Plan" },
					{ value: "timings", label: "Timings" },
				]}
			>
				{view === "rows" &&
					(data.results.length === 0 ? (
						<Empty title="No rows" />
					) : (
						<RowsGrid label="Rows of the result" columns={columns} rows={data.results}>
							{(row) => <CopyButton label="Copy the row as JSON" text={() => stringify(asObject(data, row), 2)} />}
						</RowsGrid>
					))}
				{view === "chart" && (
					<Suspense fallback={<Loading />}>
						<ResultChart
							columns={data.columns ?? []}
							types={data.types}
							rows={data.results}
							settings={{ ...settings, display: settings.display ?? "ActionsBar" }}
							onSettings={onSettings}
						/>
					</Suspense>
				)}
				{view === "plan" && <Plan asked={answer.asked} />}
				{view === "timings" && <Timings result={data} serverTiming={headers.serverTiming} elapsed={headers.elapsed} />}
			</Tabs>
		</section>
	);
}

/** How ClickHouse reads a query. */
function Plan({ asked }: { asked: QueryNode }) {
	const plan = useResource(async (signal) => (await ask({ ...asked, explain: true }, { signal })).data.explain ?? [], [asked]);
	return <Loaded of={plan}>{(lines) => <Snippet label="ClickHouse's plan" text={lines.join("\n")} />}</Loaded>;
}

function Timings({ result, serverTiming, elapsed }: { result: QueryResult; serverTiming: string; elapsed: number }) {
	const named: Record<string, string> = { "./compile": "Compiling the query", "./clickhouse": "ClickHouse", ".": "All of the computation" };
	return (
		<dl class="figures">
			{(result.timings ?? []).map(({ k, t }) => (
				<div key={k}>
					<dt>{named[k] ?? k}</dt>
					<dd>{duration(t)}</dd>
				</div>
			))}
			{serverTiming && (
				<div>
					<dt>The server, for this request</dt>
					<dd>{duration(Number(/total;dur=([\d.]+)/.exec(serverTiming)?.[1] ?? 0) / 1000)}</dd>
				</div>
			)}
			<div>
				<dt>Until it reached this page</dt>
				<dd>{duration(elapsed / 1000)}</dd>
			</div>
		</dl>
	);
}

function asObject(result: QueryResult<Rows>, row: number): Record<string, unknown> {
	return Object.fromEntries((result.columns ?? []).map((name, i) => [name, result.results[row]?.[i]]));
}
