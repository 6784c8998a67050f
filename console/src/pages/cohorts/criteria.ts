import { type Fields, isFields, listOf } from "../../editor/json";

/** A condition on people. Which fields it has depends on its type: docs/cohorts.md, "Dynamic cohorts". */
export type Leaf = Fields;

/** Conditions of which all or any have to hold. */
export interface Group {
	type: "AND" | "OR";
	values: (Group | Leaf)[];
}

export function isGroup(node: Group | Leaf): node is Group {
	return Array.isArray(node.values) && (node.type === "AND" || node.type === "OR");
}

/** The criteria of a record. A filter that is no group becomes one. */
export function criteriaOf(filters: unknown): Group {
	const properties = isFields(filters) ? filters.properties : null;
	if (!isFields(properties)) return { type: "AND", values: [] };
	if (isGroup(properties)) return properties;
	return { type: "AND", values: properties.type ? [properties] : (listOf(properties.values) as Leaf[]) };
}

/** The kinds of criteria that are offered. */
export const kinds = [
	{ value: "person", label: "have a property" },
	{ value: "performed_event", label: "did an event" },
	{ value: "performed_event_multiple", label: "did an event a number of times" },
	{ value: "performed_event_first_time", label: "did an event for the first time" },
	{ value: "performed_event_regularly", label: "did an event regularly" },
	{ value: "stopped_performing_event", label: "stopped doing an event" },
	{ value: "restarted_performing_event", label: "started doing an event again" },
	{ value: "performed_event_sequence", label: "did an event, then another" },
	{ value: "cohort", label: "are in a cohort" },
	{ value: "person_metadata", label: "were first seen" },
] as const;

export type Kind = (typeof kinds)[number]["value"];

/** The kind of a condition; null for one that is not offered. */
export function kindOf(leaf: Leaf): Kind | null {
	const name = leaf.type === "behavioral" ? leaf.value : leaf.type;
	return kinds.find((kind) => kind.value === name)?.value ?? null;
}

/** The kinds that ask for times within a later window. */
export const recent: readonly (Kind | null)[] = ["stopped_performing_event", "restarted_performing_event", "performed_event_sequence"];

/** The kinds that count. */
export const counted: readonly (Kind | null)[] = ["performed_event_multiple", "performed_event_regularly"];

/** The kinds that take no dates: their window ends now. */
export const undated: readonly (Kind | null)[] = ["restarted_performing_event", "performed_event_regularly"];

/** The kinds whose events cannot be filtered. */
export const unfiltered: readonly (Kind | null)[] = ["restarted_performing_event", "performed_event_sequence"];

/** A new condition of a kind. What an old one says of the event and the time is kept. */
export function newLeaf(kind: Kind, old: Leaf = {}): Leaf {
	const negation = old.negation === true ? { negation: true } : {};
	switch (kind) {
		case "person":
			return { type: "person", key: "", operator: "exact", value: [], ...negation };
		case "cohort":
			return { type: "cohort", key: "id", value: null, ...negation };
		case "person_metadata":
			return { type: "person_metadata", key: "created_at", operator: "is_date_after", value: "-30d", ...negation };
	}
	const kept = old.type === "behavioral" ? old : {};
	const leaf: Leaf = {
		type: "behavioral",
		value: kind,
		key: kept.key ?? "",
		event_type: kept.event_type ?? "events",
		time_value: kept.time_value ?? 30,
		time_interval: kept.time_interval ?? "day",
		...negation,
	};
	if (kept.event_filters && !unfiltered.includes(kind)) leaf.event_filters = kept.event_filters;
	if (kept.explicit_datetime && !undated.includes(kind)) {
		leaf.explicit_datetime = kept.explicit_datetime;
		if (kept.explicit_datetime_to) leaf.explicit_datetime_to = kept.explicit_datetime_to;
	}
	if (counted.includes(kind)) Object.assign(leaf, { operator: kept.operator ?? "gte", operator_value: kept.operator_value ?? 3 });
	if (recent.includes(kind))
		Object.assign(leaf, { seq_time_value: kept.seq_time_value ?? 7, seq_time_interval: kept.seq_time_interval ?? "day" });
	if (kind === "performed_event_sequence")
		Object.assign(leaf, { seq_event: kept.seq_event ?? "", seq_event_type: kept.seq_event_type ?? "events" });
	if (kind === "performed_event_regularly") {
		Object.assign(leaf, {
			time_value: 1,
			time_interval: "week",
			min_periods: kept.min_periods ?? 3,
			total_periods: kept.total_periods ?? 4,
		});
	}
	return leaf;
}

/** The group with another member at a place; without it if that is undefined. */
export function withMember(group: Group, at: number, member: Group | Leaf | undefined): Group {
	const values = member === undefined ? group.values.filter((_, i) => i !== at) : group.values.map((old, i) => (i === at ? member : old));
	return { ...group, values };
}

/** The groups without empty ones; null when nothing is left. */
export function tidied(group: Group): Group | null {
	const values = group.values.flatMap((member): Group["values"] => {
		if (!isGroup(member)) return [member];
		const inner = tidied(member);
		return inner ? [inner] : [];
	});
	return values.length ? { ...group, values } : null;
}

/** How a list of people is written, one in each line, as a CSV file of one column: docs/cohorts.md, "Static cohorts". */
export function csvOf(by: "distinct_id" | "email" | "person_id", text: string): string {
	const rows = text
		.split(/\r?\n/)
		.map((line) => line.trim())
		.filter(Boolean);
	return [by, ...rows].map((cell) => `"${cell.replace(/"/g, '""')}"`).join("\n");
}
