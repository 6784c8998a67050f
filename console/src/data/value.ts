import { stringify } from "../api/json";

/** What a value of a property is, as people call it. */
export type ValueType = "text" | "number" | "boolean" | "list" | "object" | "none";

export function typeOf(value: unknown): ValueType {
	if (value === null || value === undefined) return "none";
	if (Array.isArray(value)) return "list";
	switch (typeof value) {
		case "number":
		case "bigint":
			return "number";
		case "boolean":
			return "boolean";
		case "object":
			return "object";
	}
	return "text";
}

/** The properties whose names or values have a text in them, those without $ first, by name. */
export function sortProperties(properties: Record<string, unknown>, search = ""): [string, unknown][] {
	const wanted = search.toLowerCase();
	const has = (text: string) => text.toLowerCase().includes(wanted);
	const own = (name: string) => (name.startsWith("$") ? 1 : 0);
	return Object.entries(properties)
		.filter(([name, value]) => !wanted || has(name) || has(typeof value === "string" ? value : stringify(value)))
		.sort(([a], [b]) => own(a) - own(b) || a.localeCompare(b));
}
