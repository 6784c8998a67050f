import { parse, rounded, stringify } from "../api/json";
import { isNode, isWrapper, type QueryNode, type QueryResult, sourceOf, type Warning } from "../api/query";

/** A user as records name the author of something: the label of a key. */
export interface User {
	id: number;
	first_name: string;
}

/** A saved insight: docs/saved-insights.md. Lists with `basic=true` leave the result out. */
export interface Insight {
	id: number;
	short_id: string;
	name: string | null;
	derived_name: string | null;
	description?: string | null;
	query: QueryNode | null;
	tags?: string[];
	favorited?: boolean;
	saved?: boolean;
	dashboards?: number[];
	created_by?: User | null;
	created_at?: string | null;
	last_modified_at?: string | null;
	result?: unknown;
	last_refresh?: string | null;
	is_cached?: boolean;
	cache_target_age?: string | null;
	query_status?: { error_message?: string | null } | null;
	warnings?: Warning[];
	[field: string]: unknown;
}

/** The same saved query with another source in its nodes. A bare query gets the node that displays its kind. */
export function withSource(saved: QueryNode | null, source: QueryNode): QueryNode {
	if (saved && isWrapper(saved) && fits(saved.kind, source.kind)) {
		return { ...saved, source: isWrapper(saved.source) ? withSource(saved.source, source) : source };
	}
	return { kind: wrapperOf(source.kind), source };
}

function wrapperOf(kind: string): string {
	if (kind === "HogQLQuery") return "DataVisualizationNode";
	return tables.has(kind) ? "DataTableNode" : "InsightVizNode";
}

function fits(wrapper: string, kind: string): boolean {
	return wrapper === wrapperOf(kind) || (wrapper === "DataTableNode" && kind === "HogQLQuery");
}

/** Kinds that are lists of rows and no insights. */
const tables = new Set(["EventsQuery", "ActorsQuery", "GroupsQuery"]);

const kindNames: Record<string, string> = {
	TrendsQuery: "Trend",
	FunnelsQuery: "Funnel",
	RetentionQuery: "Retention",
	PathsQuery: "Paths",
	LifecycleQuery: "Lifecycle",
	StickinessQuery: "Stickiness",
	WebOverviewQuery: "Web overview",
	WebStatsTableQuery: "Web table",
	FunnelCorrelationQuery: "Correlation",
	CalendarHeatmapQuery: "Heat map",
	HogQLQuery: "SQL",
	EventsQuery: "Events",
	ActorsQuery: "People",
};

/** A word for the kind of a query, such as "Trend". */
export function kindName(query: QueryNode | null | undefined): string {
	if (!isNode(query)) return "No query";
	const { kind } = sourceOf(query);
	return kindNames[kind] ?? kind.replace(/Query$/, "");
}

/** What an insight is called in lists: its name, the one made from its query, or its kind. */
export function titleOf(insight: Pick<Insight, "name" | "derived_name" | "query">): string {
	return insight.name || insight.derived_name || `${kindName(insight.query)} without a name`;
}

/** Reports whether the result of a query is rows, which are shown as they are. Those of other kinds are numbers that are drawn. */
export const hasRows = ({ kind }: QueryNode): boolean => kind === "HogQLQuery" || tables.has(kind);

/** An insight that was read exactly, with numbers in place of bigints where its result is drawn. */
export function drawable(insight: Insight): Insight {
	return insight.query && hasRows(sourceOf(insight.query)) ? insight : { ...insight, result: rounded(insight.result) };
}

/** The parts of an insight's record that charts draw. */
export function resultOf(insight: Insight): QueryResult {
	return { ...insight, results: insight.result } as QueryResult;
}

/** The query that a new insight begins with. */
export const firstQuery: QueryNode = {
	kind: "TrendsQuery",
	dateRange: { date_from: "-30d" },
	interval: "day",
	series: [{ kind: "EventsNode", event: null }],
};

/** The query in an address: in `?q=`, or in `#q=` as PostHog's clients link to it. Null when there is none that can be read. */
export function queryOfAddress(search: string, hash = ""): QueryNode | null {
	const text = new URLSearchParams(search).get("q") ?? new URLSearchParams(hash.replace(/^#/, "")).get("q");
	if (!text) return null;
	try {
		const given = parse(text);
		return isNode(given) ? given : null;
	} catch {
		return null;
	}
}

/** A query string with a query in it; without one when there is nothing to tell. */
export function addressOfQuery(query: QueryNode | null): string {
	return query ? `?${new URLSearchParams({ q: stringify(query) })}` : "";
}

/** Reports whether two JSON values are the same, whatever the order of their fields. Fields without a value count for nothing. */
export function same(a: unknown, b: unknown): boolean {
	return stringify(sorted(a)) === stringify(sorted(b));
}

function sorted(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(sorted);
	if (typeof value !== "object" || value === null) return value;
	const entries = Object.entries(value).filter(([, v]) => v !== undefined);
	entries.sort(([x], [y]) => (x < y ? -1 : 1));
	return Object.fromEntries(entries.map(([k, v]) => [k, sorted(v)]));
}

/** Why a name cannot be that of an endpoint; an empty text when it can. */
export function endpointNameMistake(name: string): string {
	if (!name) return "";
	if (!/^[a-zA-Z]/.test(name)) return "The name has to begin with a letter.";
	if (!/^[a-zA-Z0-9_-]*$/.test(name)) return "The name can have letters, digits, hyphens and underscores only.";
	return name.length > 128 ? "The name can have 128 characters at most." : "";
}

/** A name for an endpoint made from a title: "Daily visitors" gives daily-visitors. */
export function endpointName(title: string): string {
	return title
		.normalize("NFKD")
		.replace(/\p{M}/gu, "")
		.toLowerCase()
		.replaceAll("ß", "ss")
		.replace(/[^a-z0-9]+/g, "-")
		.replace(/^[^a-z]+|-+$/g, "")
		.slice(0, 60);
}

/** The names of the variables that runs of the query take as an endpoint: docs/insights.md, "Endpoints". */
export function endpointVariables(query: QueryNode): string[] {
	const source = sourceOf(query);
	if (source.kind === "HogQLQuery") {
		const variables = Object.values((source.variables as Record<string, { code_name?: string }> | undefined) ?? {});
		return variables.map((v) => v.code_name ?? "").filter(Boolean);
	}
	const filter = source.breakdownFilter as
		{ breakdown?: unknown; breakdown_type?: string; breakdowns?: { property?: unknown }[] } | undefined;
	const single = filter?.breakdown_type === "cohort" || !filter?.breakdown ? [] : [filter.breakdown].flat();
	const several = (filter?.breakdowns ?? []).map((b) => b.property);
	const dates = source.kind === "RetentionQuery" ? ["date_to"] : ["date_from", "date_to"];
	return [...dates, ...[...single, ...several].filter((name): name is string => typeof name === "string")];
}

/** Reports whether an alert can watch the query: docs/alerts.md. */
export const canAlert = (query: QueryNode | null): boolean => !!query && sourceOf(query).kind === "TrendsQuery";

/** A copy of a query with another value at a path such as "series.0.event". Null if there is no such place. */
export function withValueAt(query: QueryNode, path: string, value: unknown): QueryNode | null {
	const copy = structuredClone(query);
	const parts = path.split(".");
	const last = parts.pop();
	let at: unknown = copy;
	for (const part of parts) at = memberOf(at, part);
	if (last === undefined || typeof at !== "object" || at === null || !Object.hasOwn(at, last)) return null;
	(at as Record<string, unknown>)[last] = value;
	return copy;
}

function memberOf(value: unknown, name: string): unknown {
	return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

/** The query with what a warning proposes; null if it proposes nothing that can be put in. */
export function fixed(query: QueryNode, warning: Warning): QueryNode | null {
	if (typeof warning.fix !== "string") return null;
	const source = sourceOf(query);
	if (typeof source.query === "string" && typeof warning.start === "number" && typeof warning.end === "number") {
		const characters = [...source.query];
		characters.splice(warning.start, warning.end - warning.start, warning.fix);
		return withSource(query, { ...source, query: characters.join("") });
	}
	const next = warning.attr ? withValueAt(source, warning.attr.replace(/^(query\.)?(source\.)*/, ""), warning.fix) : null;
	return next && withSource(query, next);
}
