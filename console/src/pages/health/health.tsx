import { clock, projectZone } from "../../data/time";
import { usePoll, useResource } from "../../api/use";
import { Link, pageAddress } from "../../router";
import { can } from "../../session";
import { Badge, Button, Card, Empty, Loaded, PageHead } from "../../ui/basics";
import { ago, bytes, duration, number, percent } from "../../ui/format";
import { type Column, Table } from "../../ui/table";
import {
	alertsState,
	captureState,
	databaseState,
	keptState,
	type LoggedQuery,
	queriesState,
	readLog,
	readStatus,
	type State,
	type Status,
	tablesState,
} from "./api";

/** Milliseconds between two looks. */
const interval = 5000;

/** How the server and the project are doing. */
export default function Page() {
	const status = useResource((signal) => readStatus(signal), []);
	usePoll(status, interval);
	return (
		<>
			<PageHead title="Health" about="The server, and what it does for this project. Updated every few seconds." />
			<Loaded of={status} rows={8}>
				{(data) => <Figures status={data} />}
			</Loaded>
			{can("query:read") && <Log />}
		</>
	);
}

type Figure = [name: string, value: string];

function Figures({ status }: { status: Status }) {
	const { clickhouse, registry, cache, capture, events, queries, materialized, alerts } = status;
	return (
		<div class="health-cards">
			<Part
				title="Server"
				state={registry.reachable ? { tone: "good", words: "Running" } : { tone: "bad", words: "The registry cannot be reached" }}
				figures={[
					["Version", status.version],
					["Running for", duration(status.uptime_seconds)],
				]}
			/>
			<Part
				title="ClickHouse"
				state={databaseState(status)}
				figures={[
					["Kind", clickhouse.kind === "embedded" ? "Embedded engine" : "Server"],
					["Version", clickhouse.version ?? "unknown"],
					["Ping", clickhouse.ping_ms === null ? "–" : duration(clickhouse.ping_ms / 1000)],
				]}
			/>
			<Part
				title="Cache"
				state={{ tone: "good", words: cache.hit_ratio === null ? "Not used yet" : `${percent(cache.hit_ratio)} hits` }}
				figures={[
					["Hits", number(cache.hits)],
					["Misses", number(cache.misses)],
				]}
			/>
			<Part
				title="Queries"
				state={queriesState(status)}
				figures={[
					["Running", `${number(queries.running)} of ${number(queries.max_running)}`],
					["Waiting", `${number(queries.waiting)} of ${number(queries.max_waiting)}`],
				]}
			/>
			<Part title="Capture" state={captureState(status)} figures={captureFigures(capture)} />
			<Part
				title="Events"
				state={keptState(status)}
				figures={[["Shown from", events.from ? clock(events.from, projectZone()) : "the first event on"]]}
			/>
			<Part
				title="Materialized tables"
				state={tablesState(status)}
				figures={[
					["Tables", number(materialized.tables)],
					["Ready", number(materialized.ready)],
					["Failing", number(materialized.failing)],
					["Oldest filled", ago(materialized.oldest_filled_at)],
				]}
			/>
			<Part
				title="Alerts"
				state={alertsState(status)}
				figures={[
					["Enabled", `${number(alerts.enabled)} of ${number(alerts.total)}`],
					["Firing", number(alerts.firing)],
					["Failing", number(alerts.errored)],
					["Snoozed", number(alerts.snoozed)],
					["Messages waiting", number(alerts.waiting_deliveries)],
				]}
			/>
		</div>
	);
}

function captureFigures(capture: Status["capture"]): Figure[] {
	if (!capture) return [];
	return [
		["Accepted", number(capture.accepted_events)],
		["Delivered", number(capture.delivered_events)],
		["Waiting", `${number(capture.waiting_events)} (${bytes(capture.waiting_bytes)})`],
		["Lag", duration(capture.lag_seconds)],
		["Ignored", number(capture.ignored_events)],
		["Dropped", number(capture.dropped_events)],
		["Set aside", number(capture.set_aside_events)],
		...Object.entries(capture.refused_requests ?? {}).map(([why, count]): Figure => [
			`Refused: ${why.replaceAll("_", " ")}`,
			number(count),
		]),
	];
}

function Part({ title, state, figures }: { title: string; state: State; figures: Figure[] }) {
	return (
		<Card title={title} actions={<Badge tone={state.tone}>{state.words}</Badge>}>
			<dl class="health-figures">
				{figures.map(([name, value]) => (
					<div key={name}>
						<dt>{name}</dt>
						<dd>{value}</dd>
					</div>
				))}
			</dl>
		</Card>
	);
}

/** The slowest queries of the last 30 days, and the latest that failed. */
function Log() {
	const slow = useResource((signal) => readLog("slow", signal), []);
	const failed = useResource((signal) => readLog("failed", signal), []);
	const reload = () => {
		slow.reload();
		failed.reload();
	};
	return (
		<div class="health-logs">
			<Card
				title="Slow queries"
				actions={
					<Button small onClick={reload}>
						Refresh
					</Button>
				}
			>
				<p class="hint">The slowest queries on ClickHouse in the last 30 days. Answers from the cache are not among them.</p>
				<Loaded of={slow}>{(queries) => <Queries label="Slow queries" queries={queries} none="No queries yet" />}</Loaded>
			</Card>
			<Card title="Failed queries">
				<Loaded of={failed}>{(queries) => <Queries label="Failed queries" queries={queries} none="No query has failed" failed />}</Loaded>
			</Card>
		</div>
	);
}

const columns: Column<LoggedQuery>[] = [
	{ name: "query", title: "Query", cell: (q) => <QueryText query={q} /> },
	{ name: "from", title: "From", extra: true, cell: (q) => <From query={q} /> },
	{ name: "time", title: "When", cell: (q) => ago(q.time) },
	{ name: "duration", title: "Took", number: true, cell: (q) => duration(q.milliseconds / 1000) },
];

const slowColumns: Column<LoggedQuery>[] = [
	...columns,
	{ name: "rows", title: "Rows", number: true, extra: true, cell: (q) => number(q.rows) },
];
const failedColumns: Column<LoggedQuery>[] = [...columns, { name: "code", title: "Error code", number: true, cell: (q) => String(q.code) }];

function Queries({ label, queries, none, failed }: { label: string; queries: LoggedQuery[]; none: string; failed?: boolean }) {
	if (queries.length === 0) return <Empty title={none} />;
	return <Table label={label} columns={failed ? failedColumns : slowColumns} rows={queries} keyOf={(q, i) => `${q.id}${i}`} />;
}

/** The text of a query, as a link that opens it in the SQL page. */
function QueryText({ query }: { query: LoggedQuery }) {
	if (!query.text) return <>{query.kind}</>;
	const address = `${pageAddress("sql")}?q=${encodeURIComponent(query.text)}`;
	return (
		<Link to={address} class="health-query">
			{query.text}
		</Link>
	);
}

function From({ query: { endpoint, name } }: { query: LoggedQuery }) {
	if (endpoint) return <Link to={pageAddress("endpoints", endpoint)}>{endpoint}</Link>;
	return <>{name}</>;
}
