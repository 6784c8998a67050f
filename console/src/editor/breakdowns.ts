import type { Property } from "./filters";
import { type Fields, fieldsOf, listOf, numberOf, textOf, withFields } from "./json";

/** One property that an insight is split by, with the fields of its item that are not known here. */
export interface Breakdown extends Property {
	/** How many equal ranges numbers are put in; undefined for none. */
	bins?: number;
	/** Whether a slash, question mark or number sign at the end of a URL is left out. */
	normalizeURL?: boolean;
	rest?: Fields;
}

/** The value of the cohort of all people. */
export const everybody = "all";

const single = [
	"breakdown",
	"breakdown_type",
	"breakdown_group_type_index",
	"breakdown_histogram_bin_count",
	"breakdown_normalize_url",
] as const;

/** The cohorts that an insight is split by: numbers or "all" as texts; null where it is split by something else or nothing. */
export function cohortsOf(filter: Fields): string[] | null {
	if (listOf(filter.breakdowns).length > 0 || filter.breakdown_type !== "cohort") return null;
	return asList(filter.breakdown).map((id) => (String(id) === "0" ? everybody : String(id)));
}

const asList = (value: unknown): unknown[] => (value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]);

/** The properties that an insight is split by. Those by cohort are cohortsOf. */
export function breakdownsOf(filter: Fields): Breakdown[] {
	const several = listOf(filter.breakdowns);
	if (several.length > 0) return several.map((item) => readItem(fieldsOf(item)));
	if (cohortsOf(filter)) return [];
	const type = textOf(filter.breakdown_type) || "event";
	return asList(filter.breakdown).map((key) => ({
		type,
		key: String(key),
		group_type_index: type === "group" ? (numberOf(filter.breakdown_group_type_index) ?? 0) : undefined,
		bins: numberOf(filter.breakdown_histogram_bin_count) ?? undefined,
		normalizeURL: filter.breakdown_normalize_url === true || undefined,
	}));
}

function readItem(item: Fields): Breakdown {
	const type = textOf(item.type) || "event";
	return {
		type,
		key: String(item.property ?? ""),
		group_type_index: type === "group" ? (numberOf(item.group_type_index) ?? 0) : undefined,
		bins: numberOf(item.histogram_bin_count) ?? undefined,
		normalizeURL: item.normalize_url === true || undefined,
		rest: item,
	};
}

function writeItem(b: Breakdown): Fields {
	return withFields(b.rest ?? {}, {
		property: b.type === "cohort" ? Number(b.key) : b.key,
		type: b.type,
		group_type_index: b.type === "group" ? (b.group_type_index ?? 0) : undefined,
		histogram_bin_count: b.bins,
		normalize_url: b.normalizeURL,
	});
}

/**
 * The filter with other properties to split by: one in the fields breakdown and breakdown_type, several in breakdowns, unless it has
 * the latter already.
 */
export function withBreakdowns(filter: Fields, items: Breakdown[]): Fields {
	const without = withFields(filter, Object.fromEntries(single.map((name) => [name, undefined])));
	const [only] = items;
	if (!only) return settled(withFields(without, { breakdowns: undefined }));
	const list = Array.isArray(filter.breakdown) && filter.breakdown_type !== "cohort" && items.every((b) => sameKind(b, only));
	if ((items.length > 1 && !list) || listOf(filter.breakdowns).length > 0) return withFields(without, { breakdowns: items.map(writeItem) });
	return withFields(filter, {
		breakdown: list ? items.map((b) => b.key) : only.key,
		breakdown_type: only.type,
		breakdown_group_type_index: only.type === "group" ? (only.group_type_index ?? 0) : undefined,
		breakdown_histogram_bin_count: only.bins,
		breakdown_normalize_url: only.normalizeURL,
	});
}

/** Reports whether two properties differ in their names alone. */
const sameKind = (a: Breakdown, b: Breakdown) =>
	a.type === b.type && a.group_type_index === b.group_type_index && a.bins === b.bins && a.normalizeURL === b.normalizeURL;

/** The filter with cohorts to split by. */
export function withCohorts(filter: Fields, ids: string[]): Fields {
	const before = listOf(filter.breakdown);
	const values = ids.map((id) => before.find((old) => String(old) === id) ?? (id === everybody ? everybody : Number(id)));
	const without = withFields(filter, { ...Object.fromEntries(single.map((name) => [name, undefined])), breakdowns: undefined });
	if (ids.length === 0) return settled(without);
	return withFields(cohortsOf(filter) ? filter : without, { breakdown_type: "cohort", breakdown: values });
}

/** Without anything to split by, what says how has no meaning. */
function settled(filter: Fields): Fields {
	return withFields(filter, {
		breakdown_limit: undefined,
		breakdown_hide_other_aggregation: undefined,
		breakdown_path_cleaning: undefined,
	});
}

/** Reports whether an insight is split by ranges of numbers. */
export function isHistogram(filter: Fields): boolean {
	return breakdownsOf(filter).some((b) => b.bins !== undefined);
}
