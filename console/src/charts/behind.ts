import type { QueryNode } from "../api/query";
import { fieldsOf } from "./values";

/** A point of a trend: the `order` of its series, and what else names it. */
export interface TrendPoint {
	series: number;
	/** The bucket; that of the current period if a previous one is meant. None for one number of the whole range. */
	day?: string;
	breakdown?: unknown;
	compare?: "current" | "previous";
}

/** Those counted in a point of a trend, or in its one number. */
export function trendActors(query: QueryNode, point: TrendPoint): QueryNode {
	const node: QueryNode = { kind: "InsightActorsQuery", source: query, series: point.series };
	if (point.day !== undefined) node.day = point.day;
	if (point.breakdown !== undefined) node.breakdown = point.breakdown;
	if (point.compare !== undefined) node.compare = point.compare;
	return node;
}

/** Those who reached a step of a funnel, counted from 1; with a negative step those who reached only the one before it. */
export function funnelActors(query: QueryNode, step: number, breakdown?: unknown): QueryNode {
	const node: QueryNode = { kind: "FunnelsActorsQuery", source: query, funnelStep: step };
	if (breakdown !== undefined) node.funnelStepBreakdown = breakdown;
	return node;
}

/** Those who converted in a period of a funnel's trend. */
export function funnelTrendActors(query: QueryNode, day: string, breakdown?: unknown): QueryNode {
	const node: QueryNode = {
		kind: "FunnelsActorsQuery",
		source: query,
		funnelTrendsDropOff: false,
		funnelTrendsEntrancePeriodStart: day.length === 10 ? `${day} 00:00:00` : day,
	};
	if (breakdown !== undefined) node.funnelStepBreakdown = breakdown;
	return node;
}

/** The people in a row of a retention; `column` keeps those who came back in that column. */
export function retentionActors(query: QueryNode, row: number, column: number, breakdown?: unknown): QueryNode {
	const source: QueryNode = { kind: "InsightActorsQuery", source: query, interval: row };
	if (breakdown !== undefined && breakdown !== null) source.breakdown = [breakdown];
	if (column === 0) return source;
	const period = String(fieldsOf(query, "retentionFilter").period ?? "Day").toLowerCase();
	return { kind: "ActorsQuery", source, properties: [{ type: "hogql", key: `${period}_${column} = 1` }] };
}

/** The people on paths through an edge, or a node when there is one key. Keys are numbered names, such as "1_/pricing". */
export function pathActors(query: QueryNode, keys: { start?: string; end?: string; dropoff?: string }): QueryNode {
	const filter = { ...fieldsOf(query, "pathsFilter") };
	if (keys.start !== undefined) filter.pathStartKey = keys.start;
	if (keys.end !== undefined) filter.pathEndKey = keys.end;
	if (keys.dropoff !== undefined) filter.pathDropoffKey = keys.dropoff;
	return { kind: "InsightActorsQuery", source: { ...query, pathsFilter: filter } };
}

/** Those active in some number of intervals. */
export function stickinessActors(query: QueryNode, point: { days: number; series: number; compare?: "current" | "previous" }): QueryNode {
	const cumulative = fieldsOf(query, "stickinessFilter").computedAs === "cumulative";
	const node: QueryNode = {
		kind: "StickinessActorsQuery",
		source: query,
		day: point.days,
		operator: cumulative ? "gte" : "exact",
		series: point.series,
	};
	if (point.compare !== undefined) node.compare = point.compare;
	return node;
}

/** Those with a status in a bucket of a lifecycle. */
export const lifecycleActors = (query: QueryNode, day: string, status: string): QueryNode => ({
	kind: "InsightActorsQuery",
	source: query,
	day,
	status,
});

/** Those with an item of a correlation who converted, or did not. */
export function correlationActors(query: QueryNode, item: string, converted: boolean): QueryNode {
	const node: QueryNode = { kind: "FunnelCorrelationActorsQuery", source: query, funnelCorrelationPersonConverted: converted };
	const parts = item.split("::");
	const [first = "", second = "", ...rest] = parts;
	switch (query.funnelCorrelationType) {
		case "properties": {
			const funnel = fieldsOf(fieldsOf(query, "source"), "source");
			const group = funnel.aggregation_group_type_index;
			const of = typeof group === "number" ? { type: "group", group_type_index: group } : { type: "person" };
			const value = [second, ...rest].join("::");
			node.funnelCorrelationPropertyValues = [
				value === "" ? { ...of, key: first, operator: "is_not_set" } : { ...of, key: first, value, operator: "exact" },
			];
			return node;
		}
		case "event_with_properties":
			node.funnelCorrelationPersonEntity = {
				kind: "EventsNode",
				event: first,
				properties: [{ type: "event", key: second, value: rest.join("::"), operator: "exact" }],
			};
			return node;
	}
	node.funnelCorrelationPersonEntity = { kind: "EventsNode", event: item };
	return node;
}
