import { type Answer, isAbort, remove, send } from "./client";

/** A node of the query language, such as {"kind": "TrendsQuery", "series": […]}: docs/insights.md. */
export interface QueryNode {
	kind: string;
	[field: string]: unknown;
}

/** Reports whether a value can be a query: an object with a kind. */
export function isNode(value: unknown): value is QueryNode {
	return typeof value === "object" && value !== null && typeof (value as { kind?: unknown }).kind === "string";
}

const wrappers = new Set(["InsightVizNode", "DataVisualizationNode", "DataTableNode"]);

/** Reports whether a query says how the result of its source is displayed. */
export const isWrapper = (query: QueryNode): query is QueryNode & { source: QueryNode } => wrappers.has(query.kind) && isNode(query.source);

/** The query in a saved one, without the nodes around it. */
export function sourceOf(query: QueryNode): QueryNode {
	let node = query;
	while (isWrapper(node)) node = node.source;
	return node;
}

/** A result of POST query/. Which fields it has depends on the kind. */
export interface QueryResult<T = unknown> {
	results: T;
	columns?: string[];
	types?: [string, string][] | string[];
	/** Null where the rows are not counted, as those of a query with a LIMIT of its own. */
	hasMore?: boolean | null;
	limit?: number;
	offset?: number;
	hogql?: string;
	error?: string | null;
	warnings?: Warning[];
	timings?: { k: string; t: number }[];
	explain?: string[];
	is_cached?: boolean;
	last_refresh?: string;
	[field: string]: unknown;
}

/** Something in a query that runs and may not mean what its author thinks: docs/api.md, "Warnings". */
export interface Warning {
	message: string;
	start?: number | null;
	end?: number | null;
	fix?: string | null;
	attr?: string | null;
}

/** When a result is computed: docs/api.md, "When it is computed". */
export type Refresh = "blocking" | "force_blocking" | "force_cache";

export interface QueryOptions {
	refresh?: Refresh;
	/** Gives the query up: the server stops it, too. */
	signal?: AbortSignal;
	variables?: Record<string, unknown>;
	filters?: unknown;
	/** Whole numbers of the result that a number cannot hold are bigints. */
	exact?: boolean;
}

/** Asks a query, and waits for its result. Giving up by the signal also cancels it on the server. */
export async function ask<T = unknown>(query: QueryNode, options: QueryOptions = {}): Promise<Answer<QueryResult<T>>> {
	const id = newID();
	const body: Record<string, unknown> = { query, client_query_id: id };
	if (options.refresh) body.refresh = options.refresh;
	if (options.variables) body.variables_override = options.variables;
	if (options.filters) body.filters_override = options.filters;
	try {
		return await send<QueryResult<T>>("POST", "query/", { body, signal: options.signal, exact: options.exact });
	} catch (error) {
		if (isAbort(error)) remove(`query/${id}/`).catch(() => {});
		throw error;
	}
}

/** The rows of a HogQL query. */
export async function rows<T extends unknown[] = unknown[]>(
	query: string,
	values?: Record<string, unknown>,
	options?: QueryOptions,
): Promise<T[]> {
	const node: QueryNode = { kind: "HogQLQuery", query };
	if (values) node.values = values;
	return (await ask<T[]>(node, options)).data.results;
}

/** A random id. randomUUID is missing on sites without TLS, other than localhost. */
export function newID(): string {
	return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The type of each column, which results have as a text or beside the name. */
export function typesOf(types: unknown, count: number): string[] {
	if (!Array.isArray(types)) return Array.from({ length: count }, () => "");
	return types.map((t) => (Array.isArray(t) ? String(t[1] ?? "") : String(t)));
}

/** Reports whether a ClickHouse type is a number's. */
export const isNumeric = (type: string): boolean => /^(Nullable\(|LowCardinality\()*(U?Int|Float|Decimal)/.test(type);

/** Reports whether a ClickHouse type is a date's or a time's. */
export const isTime = (type: string): boolean => /^(Nullable\(|LowCardinality\()*Date/.test(type);
