import type { Filter } from "./events";

/** The comparisons of filters that are offered. */
const operators = [
	{ value: "exact", label: "equals" },
	{ value: "is_not", label: "does not equal" },
	{ value: "icontains", label: "contains" },
	{ value: "not_icontains", label: "does not contain" },
	{ value: "regex", label: "matches regex" },
	{ value: "not_regex", label: "does not match regex" },
	{ value: "gt", label: "is greater than" },
	{ value: "gte", label: "is at least" },
	{ value: "lt", label: "is less than" },
	{ value: "lte", label: "is at most" },
	{ value: "is_date_exact", label: "is on the date" },
	{ value: "is_date_before", label: "is before" },
	{ value: "is_date_after", label: "is after" },
	{ value: "is_set", label: "is set" },
	{ value: "is_not_set", label: "is not set" },
];

/** The comparisons to choose from, with the one that is chosen even if it is none of the usual. */
export function operatorsOf(chosen: string): { value: string; label: string }[] {
	return operators.some((o) => o.value === chosen) ? operators : [...operators, { value: chosen, label: chosen.replace(/_/g, " ") }];
}

/** Reports whether a comparison is with a value. */
export const takesValue = (operator: string): boolean => operator !== "is_set" && operator !== "is_not_set";

/** Comparisons that take several values. */
const listed = new Set(["exact", "is_not", "in", "not_in"]);

/** A filter's value as a text: several ones are separated by commas. */
export function valueText(value: unknown): string {
	if (value === null || value === undefined) return "";
	return Array.isArray(value) ? value.join(", ") : String(value);
}

/** The filter with a value that was typed. */
export function readValue(filter: Filter, typed: string): Filter {
	const operator = String(filter.operator ?? "exact");
	if (!takesValue(operator)) {
		const { value: _, ...rest } = filter;
		return { ...rest, value: operator };
	}
	if (!listed.has(operator)) return { ...filter, value: typed };
	if (Array.isArray(filter.value) && valueText(filter.value) === typed) return filter;
	return { ...filter, value: typed.trim() ? [typed] : [] };
}

/** Reports whether a filter names a property, and a value if it needs one. Others have no effect. */
export function isFilled(filter: Filter): boolean {
	const type = filter.type ?? "event";
	if (type !== "event" && type !== "person") return true;
	if (!filter.key) return false;
	return !takesValue(String(filter.operator ?? "exact")) || valueText(filter.value) !== "";
}
