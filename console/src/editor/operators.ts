import { readNumber, stringify } from "../api/json";
import { isCohortType } from "./filters";
import { type Fields, listOf, textOf } from "./json";

/** The declared type of a property; null where none is known. */
export type PropertyType = "String" | "Numeric" | "Boolean" | "DateTime" | "Duration" | null;

/** How the value of a filter is entered. */
export type ValueInput = "none" | "several" | "one" | "number" | "range" | "date" | "boolean" | "cohort";

export interface Operator {
	value: string;
	label: string;
	input: ValueInput;
}

const several = (value: string, label: string): Operator => ({ value, label, input: "several" });
const one = (value: string, label: string): Operator => ({ value, label, input: "one" });
const number = (value: string, label: string): Operator => ({ value, label, input: "number" });
const range = (value: string, label: string): Operator => ({ value, label, input: "range" });
const date = (value: string, label: string): Operator => ({ value, label, input: "date" });

const equal = [several("exact", "is"), several("is_not", "is not")];
const texts = [
	one("icontains", "contains"),
	one("not_icontains", "does not contain"),
	one("starts_with", "starts with"),
	one("not_starts_with", "does not start with"),
	one("ends_with", "ends with"),
	one("not_ends_with", "does not end with"),
	one("regex", "matches the pattern"),
	one("not_regex", "does not match the pattern"),
];
const numbers = [
	number("gt", "is greater than"),
	number("gte", "is at least"),
	number("lt", "is less than"),
	number("lte", "is at most"),
	range("between", "is between"),
	range("not_between", "is not between"),
];
const dates = [date("is_date_before", "is before"), date("is_date_after", "is after"), date("is_date_exact", "is at")];
const presence: Operator[] = [
	{ value: "is_set", label: "is set", input: "none" },
	{ value: "is_not_set", label: "is not set", input: "none" },
];
const truth: Operator[] = [
	{ value: "exact", label: "is", input: "boolean" },
	{ value: "is_not", label: "is not", input: "boolean" },
];
const membership: Operator[] = [
	{ value: "in", label: "is in the cohort", input: "cohort" },
	{ value: "not_in", label: "is not in the cohort", input: "cohort" },
];

/** Operators that other clients write and that are not offered. They are shown and kept where a filter has them. */
const others = [
	several("in", "is one of"),
	several("not_in", "is none of"),
	several("icontains_multi", "contains one of"),
	several("not_icontains_multi", "contains none of"),
	several("is_cleaned_path_exact", "is the path"),
	number("min", "is at least"),
	number("max", "is at most"),
	one("semver_eq", "is the version"),
	one("semver_neq", "is not the version"),
	one("semver_gt", "is a later version than"),
	one("semver_gte", "is the version or later"),
	one("semver_lt", "is an earlier version than"),
	one("semver_lte", "is the version or earlier"),
	one("semver_tilde", "is a patch of the version"),
	one("semver_caret", "is compatible with the version"),
	one("semver_wildcard", "matches the version"),
	one("flag_evaluates_to", "evaluates to"),
];

/** The operators of a filter by its type, its key and the declared type of the property, the default first. */
export function operatorsFor(type: string, key: string, property: PropertyType): Operator[] {
	if (isCohortType(type)) return membership;
	if (type === "element") {
		if (key === "selector" || key === "tag_name") return equal;
		return [...equal, ...texts, ...presence];
	}
	switch (property) {
		case "Boolean":
			return [...truth, ...presence];
		case "Numeric":
		case "Duration":
			return [...equal, ...numbers, ...presence];
		case "DateTime":
			return [...dates, ...presence];
		case "String":
			return [...equal, ...texts, ...presence];
	}
	return [...equal, ...texts, ...numbers, ...dates, ...presence];
}

/** The operators that are offered, and the filter's own where it is another one. */
export function operatorsOf(filter: Fields, property: PropertyType): Operator[] {
	const offered = operatorsFor(textOf(filter.type) || "event", textOf(filter.key), property);
	const own = operatorOf(filter);
	if (offered.some((o) => o.value === own)) return offered;
	const every = [...equal, ...texts, ...numbers, ...dates, ...presence, ...others];
	return [...offered, every.find((o) => o.value === own) ?? { value: own, label: own, input: "several" }];
}

/** The operator of a filter: what counts where it names none. */
export function operatorOf(filter: Fields): string {
	const given = textOf(filter.operator);
	if (isCohortType(textOf(filter.type))) return filter.negation === true || given === "not_in" || given === "is_not" ? "not_in" : "in";
	return given || "exact";
}

/** The values of a filter as texts. */
export function valuesOf(value: unknown): string[] {
	if (value === null || value === undefined || value === "") return [];
	return (Array.isArray(value) ? listOf(value) : [value]).map((v) => (typeof v === "object" ? stringify(v) : String(v)));
}

/** A value for an operator that takes its value in this way, made of what there was. A filter without a value has no effect. */
export function valueFor(input: ValueInput, before: unknown): unknown {
	const values = valuesOf(before);
	const numeric = values.map(readNumber).filter((n) => n !== null);
	switch (input) {
		case "none":
			return undefined;
		case "several":
			return Array.isArray(before) ? before : values.length > 0 ? values : null;
		case "number":
			return numeric[0] ?? null;
		case "range":
			return numeric.length === 2 ? numeric : null;
		case "boolean":
			return values[0] === "true" || values[0] === "false" ? [values[0]] : null;
		case "one":
		case "date":
		case "cohort":
			return values[0] ?? null;
	}
}

/** A filter with another operator, and the value that goes with it. */
export function withOperator(filter: Fields, operator: Operator): Fields {
	const out: Fields = { ...filter, operator: operator.value };
	delete out.negation;
	const before = operatorsOf(filter, null).find((o) => o.value === operatorOf(filter))?.input;
	if (before === operator.input) return out;
	const value = operator.input === "cohort" ? filter.value : valueFor(operator.input, filter.value);
	if (value === undefined) delete out.value;
	else out.value = value;
	return out;
}
