import type { QueryNode } from "../api/query";
import type { ResultSettings } from "../charts/options/result";
import type { Written } from "./drafts";
import { fromQuery, toQuery, usesFilters, type Variable, type VariableUse } from "./variables";

/** A text of which nothing else was said. */
export const plain = (text: string): Written => ({ text, given: {}, dates: { date_from: "-7d" }, settings: {} });

/** A query in SQL, with how its rows are drawn. */
export interface Drawn extends QueryNode, ResultSettings {
	source: QueryNode;
}

type Variables = Record<string, VariableUse> | undefined;

interface Filters {
	dateRange?: Record<string, unknown> | null;
	[field: string]: unknown;
}

/** What of a saved query is written on the page. */
export function writtenOf({ display, chartSettings, source }: Drawn): Written {
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
export function queryOf({ text, given, dates }: Written, defined: readonly Variable[], before?: QueryNode): Asked {
	return {
		...before,
		kind: "HogQLQuery",
		query: text,
		variables: toQuery(text, defined, given, before?.variables as Variables),
		filters: usesFilters(text) ? withDates(filtersOf(before), dates) : (before?.filters as Filters | undefined),
	};
}

const filtersOf = (query: QueryNode | undefined) => (query?.filters ?? {}) as Filters;

function withDates(before: Filters, dates: Record<string, unknown>): Filters | undefined {
	const filters = { ...before, dateRange: Object.keys(dates).length > 0 ? dates : undefined };
	return Object.values(filters).some((value) => value !== undefined) ? filters : undefined;
}
