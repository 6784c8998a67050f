import { type Fields, fieldsOf, isFields, listOf, textOf, withFields, withItem } from "./json";

/** Filters as queries hold them: a list, which means all of them, or a group {"type": "AND" | "OR", "values": […]} of filters and groups. */
export type Filters = unknown[] | Fields | null | undefined;

/** The types of filters that can be offered. */
export type FilterType = "event" | "person" | "group" | "session" | "cohort" | "element" | "hogql";

/** What insights can be filtered by. */
export const everyFilterType: FilterType[] = ["event", "person", "group", "session", "cohort", "element", "hogql"];

/** What a filter or a breakdown looks at. */
export interface Property {
	type: string;
	/** The name of a property, an expression of type hogql, or the number of a cohort as a text. */
	key: string;
	group_type_index?: number;
	/** What is shown for the key, such as the name of a cohort. */
	label?: string;
}

export const isGroup = (node: unknown): node is Fields => isFields(node) && "values" in node;

/** The members of a list or a group. */
export const membersOf = (filters: Filters): unknown[] => (Array.isArray(filters) ? filters : listOf(fieldsOf(filters).values));

/** Reports whether one member of a group is enough. */
export const isAny = (filters: Filters): boolean => isGroup(filters) && filters.type === "OR";

/** How many filters there are, in groups too. */
export function countFilters(filters: Filters): number {
	return membersOf(filters).reduce<number>((n, member) => n + (isGroup(member) ? countFilters(member) : 1), 0);
}

/** The same list or group with other members. Nothing becomes a list. */
export function withMembers(filters: Filters, members: unknown[]): Filters {
	return isGroup(filters) ? withFields(filters, { values: members }) : members;
}

/** A list or group with a member replaced. A group that has lost its last filter goes, too. */
export function withMember(filters: Filters, at: number, member: unknown): Filters {
	const gone = isGroup(member) && membersOf(member).length === 0;
	return withMembers(filters, withItem(membersOf(filters), at, gone ? undefined : member));
}

/**
 * The same filters where all of them have to hold, or any. A list where any is enough becomes a group in a group, which is the form
 * that other clients write.
 */
export function withAny(filters: Filters, any: boolean): Filters {
	if (isGroup(filters)) return withFields(filters, { type: any ? "OR" : "AND" });
	if (!any) return filters;
	return { type: "AND", values: [{ type: "OR", values: membersOf(filters) }] };
}

/** Filters with another group beside those that are there. */
export function withGroup(filters: Filters, filter: Fields): Filters {
	const added = { type: "AND", values: [filter] };
	const members = membersOf(filters);
	if (isGroup(filters) && members.length > 0 && members.every(isGroup)) return withFields(filters, { values: [...members, added] });
	if (members.length === 0) return { type: "AND", values: [added] };
	const first = isGroup(filters) ? filters : { type: "AND", values: members };
	return { type: "AND", values: [first, added] };
}

/** Reports whether filters are groups alone, so that a filter belongs in one of them. */
export function isGrouped(filters: Filters): boolean {
	const members = membersOf(filters);
	return isGroup(filters) && members.length > 0 && members.every(isGroup);
}

/** A filter by a property, which has no value yet and thus no effect. */
export function newFilter(property: Property, operator: string): Fields {
	switch (property.type) {
		case "hogql":
			return { type: "hogql", key: property.key, value: null };
		case "cohort":
			return { type: "cohort", key: "id", value: Number(property.key), operator: "in" };
	}
	const filter: Fields = { type: property.type, key: property.key, operator, value: null };
	if (property.type === "group") filter.group_type_index = property.group_type_index ?? 0;
	return filter;
}

/** What a filter looks at. */
export function propertyOf(filter: Fields): Property {
	const type = textOf(filter.type) || "event";
	if (isCohortType(type)) return { type: "cohort", key: String(filter.value ?? ""), label: textOf(filter.cohort_name) || undefined };
	const out: Property = { type, key: String(filter.key ?? "") };
	if (type === "group") out.group_type_index = Number(filter.group_type_index ?? 0);
	return out;
}

/** Cohorts have had other names of the type. */
export const isCohortType = (type: string): boolean => type === "cohort" || type === "static-cohort" || type === "precalculated-cohort";

/** What people call the type of a property. */
export function typeName(type: string): string {
	const names: Record<string, string> = {
		event: "Event",
		person: "Person",
		group: "Group",
		session: "Session",
		cohort: "Cohort",
		element: "Clicked element",
		hogql: "SQL expression",
		event_metadata: "Event column",
		feature: "Feature flag",
		behavioral: "Behavior",
	};
	return names[type] ?? type;
}
