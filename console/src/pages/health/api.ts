import { get, send } from "../../api/client";
import type { QueryResult } from "../../api/query";
import { counted } from "../../ui/format";

/** What GET status/ says of the server and the project: docs/api.md. Counters are since the server started. */
export interface Status {
	version: string;
	started_at: string;
	uptime_seconds: number;
	clickhouse: {
		kind: "embedded" | "server";
		version: string | null;
		reachable: boolean;
		ping_ms: number | null;
		checked_at: string | null;
	};
	registry: { reachable: boolean };
	cache: { hits: number; misses: number; hit_ratio: number | null };
	/** Null on a server that captures no events. */
	capture: {
		accepted_events: number;
		ignored_events: number;
		dropped_events: number;
		/** By reason. */
		refused_requests: Record<string, number> | null;
		delivered_events: number;
		set_aside_events: number;
		waiting_events: number;
		waiting_bytes: number;
		lag_seconds: number;
	} | null;
	/** For how long events are kept, and from when on they are shown. Null: forever, and all. */
	events: { retention_days: number | null; from: string | null };
	queries: { running: number; waiting: number; max_running: number; max_waiting: number };
	materialized: { tables: number; ready: number; failing: number; oldest_filled_at: string | null };
	alerts: { total: number; enabled: number; firing: number; errored: number; snoozed: number; waiting_deliveries: number };
}

export const readStatus = (signal: AbortSignal) => get<Status>("status/", {}, signal);

/** A query that ran on ClickHouse. */
export interface LoggedQuery {
	id: string;
	time: string;
	milliseconds: number;
	kind: string;
	endpoint: string;
	name: string;
	/** The text of a HogQL query; empty for other kinds. */
	text: string;
	status: string;
	code: number;
	rows: number;
}

/** The name by which this page's own queries are left out. */
const ownName = "console: health";

const columns = "query_id, query_start_time, query_duration_ms, kind, endpoint, name, query, status, exception_code, result_rows";

/** Queries of the log: the slowest, or the last ones that failed. */
export async function readLog(which: "slow" | "failed", signal: AbortSignal): Promise<LoggedQuery[]> {
	const condition = which === "slow" ? "exception_code = 0" : "exception_code != 0";
	const order = which === "slow" ? "query_duration_ms" : "query_start_time";
	const query = `SELECT ${columns} FROM query_log WHERE name != {own} AND ${condition} ORDER BY ${order} DESC LIMIT 20`;
	const body = { query: { kind: "HogQLQuery", query, values: { own: ownName } }, name: ownName, refresh: "force_blocking" };
	const { data } = await send<QueryResult<unknown[][]>>("POST", "query/", { body, signal });
	return data.results.map(([id, time, milliseconds, kind, endpoint, name, text, status, code, rows]) => ({
		id: String(id),
		time: String(time),
		milliseconds: Number(milliseconds),
		kind: String(kind),
		endpoint: String(endpoint),
		name: String(name),
		text: String(text),
		status: String(status),
		code: Number(code),
		rows: Number(rows),
	}));
}

/** How something is doing, with the words for it. */
export interface State {
	tone: "good" | "warn" | "bad";
	words: string;
}

/** Whether the database answers. */
export function databaseState({ clickhouse }: Status): State {
	return clickhouse.reachable ? { tone: "good", words: "Reachable" } : { tone: "bad", words: "Cannot be reached" };
}

/** Seconds of lag beyond which events are late. */
const late = 60;

export function captureState({ capture }: Status): State {
	if (!capture) return { tone: "good", words: "Off" };
	if (capture.dropped_events > 0) return { tone: "warn", words: "Bad events were dropped" };
	if (capture.lag_seconds > late) return { tone: "warn", words: "Behind" };
	if (capture.set_aside_events > 0) return { tone: "warn", words: "Events were set aside" };
	return { tone: "good", words: capture.waiting_events > 0 ? "Delivering" : "Nothing waits" };
}

/** For how long events are kept. */
export function keptState({ events: { retention_days: days } }: Status): State {
	return { tone: "good", words: days === null ? "Kept forever" : `Kept for ${counted(days, "day")}` };
}

export function queriesState({ queries }: Status): State {
	if (queries.waiting >= queries.max_waiting) return { tone: "bad", words: "Full" };
	if (queries.waiting > 0) return { tone: "warn", words: "Queries wait" };
	return { tone: "good", words: "Places are free" };
}

export function tablesState({ materialized }: Status): State {
	if (materialized.failing > 0) return { tone: "bad", words: "Fills fail" };
	if (materialized.tables === 0) return { tone: "good", words: "None" };
	return materialized.ready < materialized.tables ? { tone: "warn", words: "Being filled" } : { tone: "good", words: "Ready" };
}

export function alertsState({ alerts }: Status): State {
	if (alerts.errored > 0) return { tone: "bad", words: "Checks fail" };
	if (alerts.waiting_deliveries > 0) return { tone: "warn", words: "Messages wait" };
	if (alerts.firing > 0) return { tone: "warn", words: "Firing" };
	return { tone: "good", words: alerts.total === 0 ? "None" : "Quiet" };
}
