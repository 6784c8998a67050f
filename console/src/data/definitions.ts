import { get, type Page } from "../api/client";

/** What definitions of events and properties share: docs/api.md. */
export interface Definition {
	id: string;
	name: string;
	description: string | null;
	tags: string[];
	verified: boolean;
	hidden: boolean;
	updated_at: string | null;
}

export interface EventDefinition extends Definition {
	created_at: string | null;
	last_seen_at: string | null;
}

export type PropertyKind = "event" | "person" | "group";

export interface PropertyDefinition extends Definition {
	property_type: string | null;
	is_numerical: boolean;
	is_seen_on_filtered_events: boolean | null;
}

/** How a page of definitions is asked for. */
export interface Asked {
	search?: string;
	limit: number;
	offset?: number;
}

export const eventDefinitions = (asked: Asked, signal?: AbortSignal) =>
	get<Page<EventDefinition>>("event_definitions/", { ...asked }, signal);

/** Definitions of properties of a kind; those that occur on an event, if one is named. */
export function propertyDefinitions(asked: Asked & { type: PropertyKind; group?: number; event?: string }, signal?: AbortSignal) {
	const { event, group, ...rest } = asked;
	return get<Page<PropertyDefinition>>(
		"property_definitions/",
		{
			...rest,
			group_type_index: asked.type === "group" ? group : undefined,
			event_names: event === undefined ? undefined : JSON.stringify([event]),
			filter_by_event_names: event === undefined ? undefined : true,
		},
		signal,
	);
}

/** What a declared type of a property is called. */
export function typeName(type: string | null): string {
	const names: Record<string, string> = {
		String: "Text",
		Numeric: "Number",
		Boolean: "Boolean",
		DateTime: "Date and time",
		Duration: "Duration",
	};
	return type === null ? "Unknown" : (names[type] ?? type);
}
