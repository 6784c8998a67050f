import { isNode, isWrapper, type QueryNode, sourceOf } from "../api/query";
import type { ResultSettings } from "../charts/options/result";
import { withSource } from "../insights/model";
import type { Written } from "./drafts";
import { fromQuery, toQuery, usesFilters, type Variable, type VariableUse } from "./variables";

/** A text of which nothing else was said. */
export const plain = (text: string): Written => ({ text, given: {}, dates: { date_from: "-7d" }, settings: {} });

type Variables = Record<string, VariableUse> | undefined;

interface Filters {
	dateRange?: Record<string, unknown> | null;
	[field: string]: unknown;
}

/** Reports whether a saved query is in SQL, bare or in the nodes that display it. */
export function isSQL(query: unknown): query is QueryNode {
	if (!isNode(query)) return false;
	const source = sourceOf(query);
	return source.kind === "HogQLQuery" && typeof source.query === "string";
}

/** What of a saved query is written on the page. */
export function writtenOf(query: QueryNode): Written {
	const source = sourceOf(query);
	const { display, chartSettings } = (query.kind === drawing ? query : {}) as ResultSettings;
	const usual = plain(String(source.query));
	return {
		...usual,
		given: fromQuery(source.variables as Variables),
		settings: { display, chartSettings },
		dates: filtersOf(source).dateRange ?? (usesFilters(usual.text) ? {} : usual.dates),
	};
}

/** A query as the page asks it. */
interface Asked extends QueryNode {
	variables: Variables;
	filters: Filters | undefined;
}

/** The query that is written on the page. Of the one that it was made from, everything stays that the page does not show. */
export function queryOf({ text, given, dates }: Written, defined: readonly Variable[], saved?: QueryNode): Asked {
	const before = saved && sourceOf(saved);
	return {
		...before,
		kind: "HogQLQuery",
		query: text,
		variables: toQuery(text, defined, given, before?.variables as Variables),
		filters: usesFilters(text) ? withDates(filtersOf(before), dates) : (before?.filters as Filters | undefined),
	};
}

/** A query as insights keep it: in the node that says how its rows are drawn. A saved one that is bare, or a table, stays that until it is drawn. */
export function drawnOf({ settings }: Written, source: QueryNode, saved?: QueryNode): QueryNode {
	const drawn = Object.values(settings).some((setting) => setting !== undefined);
	if (saved && saved.kind !== drawing && !drawn) return isWrapper(saved) ? withSource(saved, source) : source;
	return { ...(saved?.kind === drawing && saved), kind: drawing, source, ...settings };
}

/** The kind of the node that says how rows are drawn. */
const drawing = "DataVisualizationNode";

const filtersOf = (query: QueryNode | undefined) => (query?.filters ?? {}) as Filters;

function withDates(before: Filters, dates: Record<string, unknown>): Filters | undefined {
	const filters = { ...before, dateRange: Object.keys(dates).length > 0 ? dates : undefined };
	return Object.values(filters).some((value) => value !== undefined) ? filters : undefined;
}
