import type { QueryNode, QueryResult } from "../api/query";
import { intervalOf } from "./values";

const seconds: Record<string, number> = { second: 1, minute: 60, hour: 3600, day: 86400, week: 7 * 86400 };
const inMonths: Record<string, number> = { month: 1, quarter: 3, year: 12 };

/** Reports whether a bucket had not ended when the result was computed. */
export function goesOn(query: QueryNode, result: QueryResult, day: string | undefined): boolean {
	if (!day || !result.last_refresh) return false;
	const end = endOf(day, intervalOf(query));
	const computed = Date.parse(result.last_refresh);
	return end !== undefined && end - offsetOf(result) > computed;
}

/** When a bucket ends, in milliseconds as if the project were in UTC. */
function endOf(day: string, interval: string): number | undefined {
	const local = /[ T]/.test(day) ? day.replace(" ", "T").slice(0, 19) : `${day}T00:00:00`;
	const start = new Date(`${local}Z`);
	if (Number.isNaN(start.getTime())) return undefined;
	const step = inMonths[interval];
	if (step) return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + step, 1);
	return start.getTime() + (seconds[interval] ?? 86400) * 1000;
}

/** How far the project's clock is before UTC at the end of the range, in milliseconds. */
export function offsetOf(result: QueryResult): number {
	const range = result.resolved_date_range as { date_to?: string } | undefined;
	const found = /([+-])(\d\d):(\d\d)$/.exec(range?.date_to ?? "");
	if (!found) return 0;
	return (found[1] === "-" ? -1 : 1) * (Number(found[2]) * 60 + Number(found[3])) * 60_000;
}
