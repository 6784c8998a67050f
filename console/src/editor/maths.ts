import { type Fields, numberOf, textOf, withFields } from "./json";

/** One way to make a number of events. */
export interface Math {
	/** The API's word, followed by :: and the type of groups where it counts groups. */
	id: string;
	label: string;
	/** What it is listed under. */
	under: "Count" | "Value of a property" | "Events per person" | "Other";
	/** What else has to be given. */
	needs?: "property" | "hogql";
}

/** The kinds of insights whose series have maths. */
export type MathKind = "TrendsQuery" | "FunnelsQuery" | "StickinessQuery";

const statistics: [string, string][] = [
	["sum", "Sum"],
	["avg", "Average"],
	["min", "Minimum"],
	["max", "Maximum"],
	["median", "Median"],
	["p75", "75th percentile"],
	["p90", "90th percentile"],
	["p95", "95th percentile"],
	["p99", "99th percentile"],
];

const count = (id: string, label: string): Math => ({ id, label, under: "Count" });
const expression: Math = { id: "hogql", label: "SQL expression", under: "Other", needs: "hogql" };

/** The maths of a trend, without those of groups. */
const trends: Math[] = [
	count("total", "Total count"),
	count("dau", "Unique people"),
	count("weekly_active", "Weekly active people"),
	count("monthly_active", "Monthly active people"),
	count("unique_session", "Unique sessions"),
	count("first_time_for_user", "People, by their first event ever"),
	count("first_matching_event_for_user", "People, by their first event that passes the filters"),
	...statistics.map(([id, label]): Math => ({ id, label: `${label} of a property`, under: "Value of a property", needs: "property" })),
	...statistics
		.filter(([id]) => id !== "sum")
		.map(([id, label]): Math => ({ id: `${id}_count_per_actor`, label: `${label} per person`, under: "Events per person" })),
	expression,
];

/** The maths of a step of a funnel. Others have no effect. */
const funnels: Math[] = [
	count("total", "Any event"),
	count("first_time_for_user", "First event ever"),
	count("first_time_for_user_with_filters", "First event that passes the filters"),
];

const stickiness: Math[] = [count("dau", "Unique people"), expression];

/** A type of groups, as the project has it. */
export interface GroupKind {
	index: number;
	/** What several of them are called. */
	name: string;
}

/** The maths that series of a kind can have, for a project with these types of groups. */
export function mathsOf(kind: MathKind, groups: readonly GroupKind[]): Math[] {
	if (kind === "FunnelsQuery") return funnels;
	const unique = groups.map((g) => count(`unique_group::${g.index}`, `Unique ${g.name}`));
	if (kind === "StickinessQuery") return [...stickiness, ...unique];
	const first = groups.flatMap((g) => [
		count(`first_time_for_group::${g.index}`, `${capital(g.name)}, by their first event ever`),
		count(`first_matching_event_for_group::${g.index}`, `${capital(g.name)}, by their first event that passes the filters`),
	]);
	return [...trends, ...unique, ...first];
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

const ofGroups = ["unique_group", "first_time_for_group", "first_matching_event_for_group"];

/** What counts where a series names no math. */
const defaults: Record<MathKind, string> = { TrendsQuery: "total", FunnelsQuery: "total", StickinessQuery: "dau" };

/** The math of a series, as an id. */
export function mathOf(series: Fields, kind: MathKind): string {
	const math = textOf(series.math) || defaults[kind];
	const group = numberOf(series.math_group_type_index);
	if (ofGroups.includes(math)) return `${math}::${group ?? ""}`;
	if (kind === "TrendsQuery") return math;
	return mathsOf(kind, []).some((m) => m.id === math) ? math : defaults[kind];
}

/** Those offered, and the math of a series where it is another one. */
export function mathsFor(series: Fields, kind: MathKind, groups: readonly GroupKind[]): Math[] {
	const offered = mathsOf(kind, groups);
	const own = mathOf(series, kind);
	return offered.some((m) => m.id === own) ? offered : [...offered, { id: own, label: own.replace("::", " "), under: "Other" }];
}

/** What the math of a series needs. */
export function needOf(series: Fields, kind: MathKind): Math["needs"] {
	return mathsOf(kind, []).find((m) => m.id === mathOf(series, kind))?.needs;
}

/** A series with another math. What only the old one needed goes. */
export function withMath(series: Fields, id: string, kind: MathKind): Fields {
	const [math = "", group = ""] = id.split("::");
	const needs = mathsOf(kind, []).find((m) => m.id === id)?.needs;
	const property = needs === "property";
	return withFields(series, {
		math: math === defaults[kind] && series.math === undefined ? undefined : math,
		math_group_type_index: group === "" ? undefined : Number(group),
		...(!property && {
			math_property: undefined,
			math_property_type: undefined,
			math_multiplier: undefined,
			math_property_revenue_currency: undefined,
		}),
		...(needs !== "hogql" && { math_hogql: undefined }),
	});
}

/** A series without a math. */
export function withoutMath(series: Fields): Fields {
	return withFields(series, {
		math: undefined,
		math_property: undefined,
		math_property_type: undefined,
		math_multiplier: undefined,
		math_property_revenue_currency: undefined,
		math_hogql: undefined,
		math_group_type_index: undefined,
	});
}

const propertyTypes: Record<string, string> = { event: "event_properties", person: "person_properties", session: "session_properties" };

/** The property that a math is taken of; null for none. */
export function mathProperty(series: Fields): { type: string; key: string } | null {
	const key = textOf(series.math_property);
	if (!key) return null;
	const given = textOf(series.math_property_type);
	const type = Object.entries(propertyTypes).find(([, name]) => name === given)?.[0] ?? "event";
	return { type: key === "$session_duration" && !given ? "session" : type, key };
}

/** A series whose math is taken of a property. */
export function withMathProperty(series: Fields, property: { type: string; key: string }): Fields {
	return withFields(series, { math_property: property.key, math_property_type: propertyTypes[property.type] ?? "event_properties" });
}
