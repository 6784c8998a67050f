import { get, type Page, patch, post } from "../../api/client";
import { parse, stringify } from "../../api/json";
import { isWrapper, type QueryNode, sourceOf } from "../../api/query";
import { usedNames, type VariableUse } from "../../sql/variables";

export interface Author {
	first_name: string;
	email: string;
}

export interface Column {
	name: string;
	type: string;
	clickhouse_type?: string;
}

export interface Materialization {
	enabled: boolean;
	ready: boolean;
	can_materialize: boolean;
	reason: string | null;
	status?: string;
	last_materialized_at?: string | null;
	error?: string;
}

/** What callers notice of a change: docs/endpoints.md, "What breaks". */
export interface Change {
	code: string;
	name: string;
	before: string | null;
	after: string | null;
	detail: string;
}

export interface Changes {
	from: number;
	to: number;
	breaking: Change[];
	compatible: Change[];
}

/** The record of an endpoint: its own fields, and those of its current version. */
export interface Endpoint {
	id: string;
	name: string;
	description: string;
	query: QueryNode;
	is_active: boolean;
	data_freshness_seconds: number;
	endpoint_path: string;
	created_at: string;
	updated_at: string;
	created_by: Author | null;
	is_materialized: boolean;
	current_version: number;
	versions_count: number;
	last_executed_at: string | null;
	materialization: Materialization;
	bucket_overrides: Record<string, string> | null;
	columns: Column[];
	tags: string[];
	rate_limit: string | null;
	deprecated_at: string | null;
	sunset_at: string | null;
	changes?: Changes | null;
}

/** The record of a version: `is_active` is the version's. */
export interface Version extends Endpoint {
	version: number;
	endpoint_is_active: boolean;
	version_created_at: string;
	version_created_by: Author | null;
	is_current: boolean;
	is_draft: boolean;
	published_at: string | null;
}

/** Numbers of runs in an hour or a day. */
export interface UsageWindow {
	calls: number;
	answered: number;
	cached: number;
	cache_hit_ratio: number | null;
	p50_ms: number | null;
	p95_ms: number | null;
	errors: number;
	client_errors: number;
	server_errors: number;
	rate_limited: number;
	series?: { step_seconds: number; calls: number[]; cached: number[]; errors: number[]; rate_limited: number[]; p95_ms: (number | null)[] };
}

/** The lengths of time that runs are counted over. */
export const spans = [
	{ value: "hour", label: "Last hour" },
	{ value: "day", label: "Last day" },
] as const;

export type Span = (typeof spans)[number]["value"];

/** Numbers of runs in the last hour and the last day. */
export type UsageWindows = Record<Span, UsageWindow>;

export interface Usage extends UsageWindows {
	name: string;
	since: string;
	last_executed_at: string | null;
}

export interface VersionUsage extends UsageWindows {
	version: number;
	is_current: boolean;
	last_executed_at: string | null;
}

export interface KeyUsage extends UsageWindows {
	id: string;
	/** Null for a key that is gone. */
	label: string | null;
}

export interface CustomerUsage extends UsageWindows {
	/** What keys and tokens of the customer fix. */
	variables: Record<string, unknown>;
}

/** The usage of one endpoint: with what took part in it, most runs of the day first. */
export interface WholeUsage extends Usage {
	versions: VersionUsage[];
	keys: KeyUsage[];
	customers: CustomerUsage[];
}

/** One run of an endpoint. */
export interface Run {
	instance_id: string;
	timestamp: string;
	level: string;
	status: number;
	version: number | null;
	cache: string | null;
	duration_ms: number;
	rows: number | null;
	error_code: string | null;
}

/** How a version would be materialized. */
export interface Preview {
	can_materialize: boolean;
	reason: string | null;
	transformed_query: string | null;
	display_execution_query: string | null;
	range_pairs: { column: string; variables: string[] }[];
	aggregates: { expression: string; reaggregate_fn: string | null }[];
}

/** The path of an endpoint below the project. */
export const pathOf = (name: string, rest = "") => `endpoints/${encodeURIComponent(name)}/${rest}`;

export const readEndpoint = (name: string, signal?: AbortSignal) => get<Endpoint>(pathOf(name), {}, signal);

/** An endpoint with its versions, newest first: the newest hundred, and the current one. */
export async function readWithVersions(name: string, signal?: AbortSignal): Promise<{ record: Endpoint; versions: Version[] }> {
	const [record, { results: versions }] = await Promise.all([
		get<Endpoint>(pathOf(name), {}, signal),
		get<Page<Version>>(pathOf(name, "versions/"), { limit: 100 }, signal),
	]);
	const number = record.current_version;
	if (versions.some((v) => v.version === number)) return { record, versions };
	const current = await get<Version>(pathOf(name), { version: number }, signal);
	return { record, versions: [...versions, current].toSorted((a, b) => b.version - a.version) };
}

export const changeEndpoint = (name: string, body: Record<string, unknown>) => patch<Endpoint>(pathOf(name), body);
export const promote = (name: string, version: number) => post<Endpoint>(pathOf(name, "promote/"), { version });
export const rollBack = (name: string, version?: number) => post<Endpoint>(pathOf(name, "rollback/"), version ? { version } : {});

/** The text that stands for a query: that of HogQL, else its JSON. */
export function textOf(query: QueryNode): string {
	const inner = sourceOf(query);
	return inner.kind === "HogQLQuery" ? String(inner.query ?? "") : stringify(query, 2);
}

/**
 * The query that a text stands for, made from the one that it replaces. Of one in HogQL all but the text stays, without variables that the
 * text does not use, or that were defined anew since.
 */
export function queryOf(text: string, before: QueryNode, anew: readonly string[] = []): QueryNode {
	if (isWrapper(before) && sourceOf(before).kind === "HogQLQuery") return { ...before, source: queryOf(text, before.source, anew) };
	if (before.kind === "HogQLQuery") {
		const kept = usedNames(text).filter((name) => !anew.includes(name));
		return withVariables({ ...before, query: text }, kept);
	}
	try {
		return parse(text) as QueryNode;
	} catch (error) {
		throw new Error(`The query is not valid JSON: ${(error as Error).message}`, { cause: error });
	}
}

/** A query with those of its variables that have these names. */
function withVariables({ variables, ...query }: QueryNode, names: string[]): QueryNode {
	const left = Object.entries((variables ?? {}) as Record<string, VariableUse>).filter(([, use]) => names.includes(use.code_name));
	return left.length ? { ...query, variables: Object.fromEntries(left) } : query;
}

/** An endpoint and its versions after a change, of which the answer is the endpoint or a version. */
export function withAnswer(record: Endpoint, versions: Version[], answer: Endpoint | Version) {
	if (!("version" in answer)) return { record: answer, versions };
	return { record, versions: versions.map((v) => (v.version === answer.version ? answer : v)) };
}

/**
 * The draft that can be compared with the current version, of versions with the newest first. Comparing writes the draft again, which makes a
 * new version of any but the newest.
 */
export const comparable = ([newest]: readonly Version[]) => (newest?.is_draft ? newest : undefined);

/** Versions as choices of a list, by their number. */
export const versionChoices = (versions: readonly Version[]) =>
	versions.map((v) => ({ value: String(v.version), label: `v${v.version}${v.is_current ? " (current)" : ""}` }));

/** Who made something, in a word. */
export const authorOf = (author: Author | null | undefined) => author?.first_name || author?.email || "";
