import { stringify } from "../api/json";
import type { QueryNode } from "../api/query";
import { breakdownsOf, cohortsOf, withBreakdowns } from "./breakdowns";
import { type Fields, fieldsOf, isFields, listOf, textOf, withFields } from "./json";
import { mathsOf, type MathKind, withoutMath } from "./maths";
import { asRetentionEntity, asSeries, eventsOf } from "./series";

/** The kinds of insights that can be edited. */
export const kinds = [
	{ value: "TrendsQuery", label: "Trends" },
	{ value: "FunnelsQuery", label: "Funnel" },
	{ value: "RetentionQuery", label: "Retention" },
	{ value: "PathsQuery", label: "Paths" },
	{ value: "StickinessQuery", label: "Stickiness" },
	{ value: "LifecycleQuery", label: "Lifecycle" },
] as const;

export type Kind = (typeof kinds)[number]["value"];

/** Reports whether a query is an insight that can be edited. */
export function isInsight(query: unknown): query is QueryNode & { kind: Kind } {
	return isFields(query) && kinds.some((k) => k.value === query.kind);
}

/** The insight in a node around it, such as an InsightVizNode; undefined where there is none that can be edited. */
export function insightIn(query: QueryNode): (QueryNode & { kind: Kind }) | undefined {
	if (isInsight(query)) return query;
	return isInsight(query.source) ? query.source : undefined;
}

/** A query with another insight in the node around it, which stays as it is. */
export function withInsight(query: QueryNode, insight: QueryNode): QueryNode {
	return isInsight(query) ? insight : withFields(query, { source: insight });
}

/** What a new insight counts. */
export function newInsight(kind: Kind = "TrendsQuery", event: string | null = null): QueryNode {
	return changeKind({ kind: "TrendsQuery", series: [{ kind: "EventsNode", event }], dateRange: { date_from: "-30d" } }, kind);
}

/** The fields that all kinds share. */
const shared = [
	"dateRange",
	"properties",
	"filterTestAccounts",
	"samplingFactor",
	"aggregation_group_type_index",
	"modifiers",
	"tags",
	"dataColorTheme",
	"version",
];

/** The fields that some kinds share. */
const partly: Record<string, Kind[]> = {
	interval: ["TrendsQuery", "FunnelsQuery", "StickinessQuery", "LifecycleQuery"],
	breakdownFilter: ["TrendsQuery", "FunnelsQuery", "RetentionQuery"],
	compareFilter: ["TrendsQuery", "StickinessQuery"],
};

/** The fields of one kind alone. */
const own: Record<Kind, string[]> = {
	TrendsQuery: ["trendsFilter"],
	FunnelsQuery: ["funnelsFilter"],
	RetentionQuery: ["retentionFilter"],
	PathsQuery: ["pathsFilter", "funnelPathsFilter"],
	StickinessQuery: ["stickinessFilter", "intervalCount"],
	LifecycleQuery: ["lifecycleFilter"],
};

const periods: Record<string, string> = { hour: "Hour", day: "Day", week: "Week", month: "Month" };

/** What is counted, among the names of fields: it is in several of them. */
const counted = "what is counted";

/** An insight that was left for another kind, and what was changed since then. */
interface Left {
	query: QueryNode;
	changed: Set<string>;
}

/** Changes the kind of an insight, and remembers what each kind had: going back brings back what was not changed in between. */
export class KindSwitch {
	private made: QueryNode | undefined;
	private readonly left = new Map<string, Left>();

	/** The insight as one of another kind. */
	to(query: QueryNode, kind: Kind): QueryNode {
		if (query.kind === kind) return query;
		const changed = this.made?.kind === query.kind ? changes(this.made, query) : changes({ kind: "" }, query);
		for (const one of this.left.values()) for (const name of changed) one.changed.add(name);
		this.left.set(query.kind, { query, changed: new Set() });
		this.made = back(changeKind(query, kind, this.left.get(kind)?.query), this.left.get(kind));
		return this.made;
	}
}

/** The shared fields in which two insights of a kind differ. */
function changes(a: QueryNode, b: QueryNode): string[] {
	const out = [...shared, ...Object.keys(partly)].filter((name) => stringify(a[name]) !== stringify(b[name]));
	if (a.kind !== b.kind || stringify(seriesOf(a)) !== stringify(seriesOf(b))) out.push(counted);
	return out;
}

/** An insight with what its kind had before, where it was not changed since. */
function back(query: QueryNode, before: Left | undefined): QueryNode {
	if (!before) return query;
	const names = [...shared, ...Object.keys(partly)];
	if (!before.changed.has(counted)) {
		return withFields(before.query, Object.fromEntries(names.filter((n) => before.changed.has(n)).map((n) => [n, query[n]])));
	}
	return withFields(query, Object.fromEntries(names.filter((n) => !before.changed.has(n)).map((n) => [n, before.query[n]])));
}

/**
 * An insight of another kind that asks for the same as far as it can: dates, filters and what is counted stay. `before` is the
 * insight of that kind that was edited last, whose other fields come back.
 */
export function changeKind(query: QueryNode, kind: Kind, before?: QueryNode): QueryNode {
	if (query.kind === kind) return query;
	const out: QueryNode = { kind };
	for (const name of shared) if (name in query) out[name] = query[name];
	for (const [name, having] of Object.entries(partly)) {
		if (!having.includes(kind)) continue;
		const from = having.includes(query.kind as Kind) ? query : before;
		if (from && name in from) out[name] = from[name];
	}
	for (const name of own[kind]) if (before && name in before) out[name] = before[name];
	const series = seriesOf(query);
	switch (kind) {
		case "RetentionQuery":
			return toRetention(out, series, query);
		case "PathsQuery":
			return toPaths(out, series);
		case "FunnelsQuery":
			return toFunnel(out, series, before);
		case "LifecycleQuery":
			return { ...out, series: series.slice(0, 1).map(withoutMath) };
		case "StickinessQuery":
			return { ...out, series: series.map((s) => fitMath(s, kind)) };
		case "TrendsQuery":
			return { ...out, series: series.map((s) => fitMath(withFields(s, { optionalInFunnel: undefined }), kind)) };
	}
}

/** The step that a funnel gets where there is only one. */
const anything: Fields = { kind: "EventsNode", event: null };

const isFiller = (step: Fields | undefined) => stringify(step) === stringify(anything);

/** What an insight counts, as series. There is at least one. */
function seriesOf(query: QueryNode): Fields[] {
	if (query.kind === "RetentionQuery") {
		const filter = fieldsOf(query.retentionFilter);
		const both = [asSeries(filter.targetEntity), asSeries(filter.returningEntity)];
		return stringify(both[0]) === stringify(both[1]) ? both.slice(0, 1) : both;
	}
	if (query.kind === "PathsQuery") {
		const types = listOf(fieldsOf(query.pathsFilter).includeEventTypes);
		return [{ kind: "EventsNode", event: types.length === 1 && String(types[0]).startsWith("$") ? types[0] : null }];
	}
	const series = listOf(query.series).map(fieldsOf);
	if (query.kind === "FunnelsQuery" && series.length > 1 && isFiller(series.at(-1))) series.pop();
	return series.length > 0 ? series : [anything];
}

/** A series with its math if the kind has it, else with the kind's default. An expression means something else in each kind. */
function fitMath(series: Fields, kind: MathKind): Fields {
	const math = textOf(series.math);
	const ofGroups = math.endsWith("_group") && kind !== "FunnelsQuery";
	const known = !math || ofGroups || (math !== "hogql" && mathsOf(kind, []).some((m) => m.id === math));
	return known ? series : withoutMath(series);
}

function toFunnel(out: QueryNode, series: Fields[], before: QueryNode | undefined): QueryNode {
	const steps = series.map((s) => fitMath(s, "FunnelsQuery"));
	if (steps.length === 1) {
		const more = listOf(before?.series).slice(1).map(fieldsOf);
		steps.push(...(more.length > 0 ? more : [anything]));
	}
	const filter = fieldsOf(out.funnelsFilter);
	const exclusions = listOf(filter.exclusions).filter((e) => Number(fieldsOf(e).funnelToStep) < steps.length);
	const kept = "exclusions" in filter ? { funnelsFilter: withFields(filter, { exclusions }) } : {};
	return { ...out, ...kept, series: steps };
}

function toRetention(out: QueryNode, series: Fields[], from: QueryNode): QueryNode {
	const [target = {}, returning = target] = series;
	const filter = fieldsOf(out.retentionFilter);
	const breakdowns = breakdownsOf(fieldsOf(out.breakdownFilter));
	if (breakdowns.length > 1 && !cohortsOf(fieldsOf(out.breakdownFilter))) {
		out.breakdownFilter = withBreakdowns(withFields(fieldsOf(out.breakdownFilter), { breakdowns: undefined }), breakdowns.slice(0, 1));
	}
	return {
		...out,
		retentionFilter: {
			period: periods[textOf(from.interval)] ?? "Day",
			totalIntervals: 11,
			retentionType: "retention_first_time",
			...filter,
			targetEntity: asRetentionEntity(target),
			returningEntity: asRetentionEntity(returning),
		},
	};
}

function toPaths(out: QueryNode, series: Fields[]): QueryNode {
	if (out.pathsFilter) return out;
	const names = series.flatMap(eventsOf);
	const types = ["$pageview", "$screen"].filter((name) => names.includes(name));
	return { ...out, pathsFilter: { includeEventTypes: types.length > 0 ? types : ["custom_event"] } };
}
