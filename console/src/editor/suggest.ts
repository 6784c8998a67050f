import { get, type Page } from "../api/client";
import { can, session } from "../session";
import type { Suggestion } from "../ui/combobox";
import { text } from "../ui/format";
import { type FilterType, type Property, typeName } from "./filters";
import type { PropertyType } from "./operators";

/** What a series counts: an event by its name (null for every event), or an action by its number. */
export type Entity = { event: string | null } | { action: number; name: string };

/** A suggestion that stands for more than its text. */
export interface Suggested<T> extends Suggestion {
	of: T;
}

/** What a suggestion stands for. */
export const suggested = <T>(s: Suggestion | undefined): T | undefined => (s as Suggested<T> | undefined)?.of;

const some = 20;

/** The names of events that match a text. */
export async function eventNames(search: string, signal: AbortSignal): Promise<string[]> {
	if (!can("event_definition:read")) return [];
	const page = await get<Page<{ name: string }>>("event_definitions/", { search, limit: some }, signal);
	return page.results.map((r) => r.name);
}

interface ActionRecord {
	id: number;
	name: string | null;
}

/** Events and actions that match a text, then the text itself as the name of an event that has not been seen. */
export async function entities(
	search: string,
	offer: { actions: boolean; everything: boolean },
	signal: AbortSignal,
): Promise<Suggested<Entity>[]> {
	const [names, actions] = await Promise.all([
		eventNames(search, signal),
		offer.actions && can("action:read") ? get<Page<ActionRecord>>("actions/", { search, limit: some }, signal) : null,
	]);
	const out: Suggested<Entity>[] = names.map((name) => ({ value: `event ${name}`, label: name, of: { event: name } }));
	for (const a of actions?.results ?? []) {
		const name = a.name || `Action ${a.id}`;
		out.push({ value: `action ${a.id}`, label: name, detail: "Action", of: { action: a.id, name } });
	}
	if (offer.everything && "all events".includes(search.toLowerCase())) {
		out.push({ value: "all", label: "All events", of: { event: null } });
	}
	if (search && !names.includes(search)) {
		out.push({ value: `event ${search}`, label: search, detail: "Not seen yet", unseen: true, of: { event: search } });
	}
	return out;
}

/** The name of an action, from the API. */
export async function actionName(id: number, signal: AbortSignal): Promise<string> {
	if (!can("action:read")) return `Action ${id}`;
	return (await get<ActionRecord>(`actions/${id}/`, {}, signal)).name || `Action ${id}`;
}

/** The columns of sessions that filters and breakdowns can look at, with the types of their values. */
export const sessionProperties: Record<string, PropertyType> = {
	$session_duration: "Numeric",
	$channel_type: "String",
	$entry_current_url: "String",
	$entry_pathname: "String",
	$entry_hostname: "String",
	$entry_referring_domain: "String",
	$entry_utm_source: "String",
	$entry_utm_medium: "String",
	$entry_utm_campaign: "String",
	$entry_utm_term: "String",
	$entry_utm_content: "String",
	$end_current_url: "String",
	$end_pathname: "String",
	$end_hostname: "String",
	$last_external_click_url: "String",
	$pageview_count: "Numeric",
	$autocapture_count: "Numeric",
	$screen_count: "Numeric",
	$num_uniq_urls: "Numeric",
	$is_bounce: "Boolean",
	$start_timestamp: "DateTime",
	$end_timestamp: "DateTime",
};

/** What filters by elements can look at. */
export const elementKeys: Record<string, string> = {
	tag_name: "Tag name",
	text: "Text",
	href: "Link target",
	selector: "CSS selector",
};

interface PropertyRecord {
	name: string;
	property_type: PropertyType;
}

/** A type of groups: docs/api.md. */
export interface GroupType {
	group_type_index: number;
	group_type: string;
	name_singular?: string | null;
	name_plural?: string | null;
}

interface GroupTypes {
	key: string;
	types: Promise<GroupType[]>;
}

let knownGroups: GroupTypes | undefined;

/** The types of groups that the project has. They are asked for once; again after an error. */
export function groupTypes(): Promise<GroupType[]> {
	if (!can("group:read")) return Promise.resolve([]);
	const key = session.value?.key ?? "";
	if (knownGroups?.key !== key) {
		const types: Promise<GroupType[]> = get<GroupType[] | Page<GroupType>>("groups_types/").then(
			(answer) => (Array.isArray(answer) ? answer : answer.results),
			() => {
				if (knownGroups?.types === types) knownGroups = undefined;
				return [];
			},
		);
		knownGroups = { key, types };
	}
	return knownGroups.types;
}

/** What people call a type of groups. */
export const groupName = (g: GroupType, many = false): string =>
	(many ? g.name_plural : g.name_singular) || (many ? `${g.group_type}s` : g.group_type);

const knownTypes = new Map<string, Promise<PropertyType>>();

const typeKey = (p: Property) => [session.value?.key, p.type, p.group_type_index, p.key].join("\n");

/** The declared type of a property. It is asked for once, unless a suggestion told it before; again after an error. */
export function propertyType(p: Property): Promise<PropertyType> {
	if (p.type === "session") return Promise.resolve(sessionProperties[p.key] ?? null);
	if (!["event", "person", "group"].includes(p.type) || !p.key || !can("property_definition:read")) return Promise.resolve(null);
	const key = typeKey(p);
	let known = knownTypes.get(key);
	if (!known) {
		known = get<Page<PropertyRecord>>("property_definitions/", {
			type: p.type,
			group_type_index: p.group_type_index,
			search: p.key,
			limit: 100,
		}).then(
			(page) => page.results.find((r) => r.name === p.key)?.property_type ?? null,
			() => {
				knownTypes.delete(key);
				return null;
			},
		);
		knownTypes.set(key, known);
	}
	return known;
}

/** Forgets the types of properties, as after one was declared anew. They are asked for again. */
export const forgetTypes = () => knownTypes.clear();

export interface PropertyOffer {
	types: readonly FilterType[];
	/** Numbers alone. */
	numeric?: boolean;
	/** The events whose properties are wanted; all if empty. */
	events?: readonly string[];
}

/** Properties that match a text, of all types that are offered, then the text itself as a name that has not been seen. */
export async function properties(search: string, offer: PropertyOffer, signal: AbortSignal): Promise<Suggested<Property>[]> {
	const found = await Promise.all(offer.types.map((type) => ofType(type, search, offer, signal)));
	const out = found.flat();
	if (!search) return out;
	for (const type of ["event", "person"] as const) {
		if (offer.types.includes(type) && !out.some((s) => s.of.type === type && s.of.key === search)) {
			out.push({ ...suggestion({ type, key: search }), detail: `${typeName(type)} · not seen yet`, unseen: true });
		}
	}
	if (offer.types.includes("hogql")) out.push({ ...suggestion({ type: "hogql", key: search }), unseen: true });
	return out;
}

async function ofType(type: FilterType, search: string, offer: PropertyOffer, signal: AbortSignal): Promise<Suggested<Property>[]> {
	switch (type) {
		case "event":
		case "person":
			return defined({ type, key: "" }, search, offer, signal, typeName(type));
		case "group": {
			const types = await groupTypes();
			const lists = types.map((g) => defined({ type, key: "", group_type_index: g.group_type_index }, search, offer, signal, groupName(g)));
			return (await Promise.all(lists)).flat();
		}
		case "session":
			return Object.entries(sessionProperties)
				.filter(([key, kind]) => matches(key, search) && (!offer.numeric || kind === "Numeric"))
				.map(([key]) => suggestion({ type, key }));
		case "element":
			return Object.entries(elementKeys)
				.filter(([key, label]) => matches(key, search) || matches(label, search))
				.map(([key, label]) => suggestion({ type, key, label }));
		case "cohort":
			return cohorts(search, signal);
		case "hogql":
			return [];
	}
}

async function defined(
	of: Property,
	search: string,
	offer: PropertyOffer,
	signal: AbortSignal,
	name: string,
): Promise<Suggested<Property>[]> {
	if (!can("property_definition:read")) return [];
	const page = await get<Page<PropertyRecord>>(
		"property_definitions/",
		{
			type: of.type,
			group_type_index: of.group_type_index,
			search,
			limit: some,
			is_numerical: offer.numeric ? true : undefined,
			event_names: of.type === "event" && offer.events?.length ? JSON.stringify(offer.events) : undefined,
			filter_by_event_names: of.type === "event" && offer.events?.length ? true : undefined,
		},
		signal,
	);
	return page.results.map((r) => {
		const property = { ...of, key: r.name };
		knownTypes.set(typeKey(property), Promise.resolve(r.property_type));
		return { ...suggestion(property), detail: r.property_type ? `${name} · ${r.property_type.toLowerCase()}` : name };
	});
}

interface CohortRecord {
	id: number;
	name: string | null;
}

/** Cohorts that match a text. */
export async function cohorts(search: string, signal: AbortSignal): Promise<Suggested<Property>[]> {
	if (!can("cohort:read")) return [];
	const page = await get<Page<CohortRecord>>("cohorts/", { search, basic: true, limit: some }, signal);
	return page.results.map((c) => suggestion({ type: "cohort", key: String(c.id), label: c.name || `Cohort ${c.id}` }));
}

/** The name of a cohort, from the API. */
export async function cohortName(id: string, signal: AbortSignal): Promise<string> {
	if (!id || !can("cohort:read")) return `Cohort ${id}`;
	return (await get<CohortRecord>(`cohorts/${encodeURIComponent(id)}/`, {}, signal)).name || `Cohort ${id}`;
}

function suggestion(p: Property): Suggested<Property> {
	return {
		value: [p.type, p.group_type_index ?? "", p.key].join(" "),
		label: p.label ?? p.key,
		detail: typeName(p.type),
		of: p,
	};
}

const matches = (name: string, search: string) => name.toLowerCase().includes(search.toLowerCase());

/** Values that a property has in the data. Types whose values are not listed have none. */
export async function values(p: Property, search: string, events: readonly string[], signal: AbortSignal): Promise<Suggestion[]> {
	switch (p.type) {
		case "event": {
			if (!can("query:read")) return [];
			const names = events.map((name) => `&event_name=${encodeURIComponent(name)}`).join("");
			const path = `events/values/?key=${encodeURIComponent(p.key)}${names}`;
			return asSuggestions(await get<{ name: unknown }[]>(path, { value: search }, signal));
		}
		case "person":
			if (!can("person:read")) return [];
			return asSuggestions(await get<{ name: unknown; count?: number }[]>("persons/values/", { key: p.key, value: search }, signal));
	}
	return [];
}

function asSuggestions(found: { name: unknown; count?: number }[]): Suggestion[] {
	return found.map((v) => ({ value: text(v.name), detail: v.count === undefined ? undefined : String(v.count) }));
}
