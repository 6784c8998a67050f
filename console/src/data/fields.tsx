import { get } from "../api/client";
import { can } from "../session";
import { Combobox, type Suggestion } from "../ui/combobox";

interface Page<T> {
	results: T[];
}

/** Names of events that have a text in them. */
export async function eventNames(search: string, signal?: AbortSignal): Promise<Suggestion[]> {
	if (!can("event_definition:read")) return [];
	const { results } = await get<Page<{ name: string }>>("event_definitions/", { search, limit: 30 }, signal);
	return results.map(({ name }) => ({ value: name }));
}

/** Names of properties of events, people or groups. */
export async function propertyNames(type: "event" | "person", search: string, signal?: AbortSignal): Promise<Suggestion[]> {
	if (!can("property_definition:read")) return [];
	const { results } = await get<Page<{ name: string; property_type: string | null }>>(
		"property_definitions/",
		{ search, type, limit: 30 },
		signal,
	);
	return results.map(({ name, property_type }) => ({ value: name, detail: property_type ?? undefined }));
}

/** Values that a property has. */
export async function propertyValues(type: "event" | "person", key: string, search: string, signal?: AbortSignal): Promise<Suggestion[]> {
	const allowed = type === "event" ? can("query:read") : can("person:read");
	if (!key || !allowed) return [];
	const path = type === "event" ? "events/values/" : "persons/values/";
	const found = await get<{ name: unknown; count?: number }[]>(path, { key, value: search }, signal).catch(() => []);
	return found.map(({ name, count }) => ({ value: String(name), detail: count === undefined ? undefined : String(count) }));
}

/** A field for the name of an event; empty for every event. */
export function EventNameField({
	id,
	value,
	onValue,
	label = "Event",
	any = "Any event",
	disabled,
}: {
	id?: string;
	value: string;
	onValue: (value: string) => void;
	label?: string;
	/** What an empty field says. */
	any?: string;
	disabled?: boolean;
}) {
	const suggest = async (search: string, signal: AbortSignal) => [
		...(any && !search ? [{ value: "", label: any }] : []),
		...(await eventNames(search, signal)),
	];
	return (
		<Combobox
			id={id}
			label={label}
			value={value}
			placeholder={any || "Choose an event"}
			suggest={suggest}
			onValue={onValue}
			free
			disabled={disabled}
		/>
	);
}
