import { parse, readNumber, stringify } from "../../api/json";

/** How a value of a property is written in a form. */
export type Kind = "text" | "number" | "boolean" | "json";

export const kinds: { value: Kind; label: string }[] = [
	{ value: "text", label: "Text" },
	{ value: "number", label: "Number" },
	{ value: "boolean", label: "True or false" },
	{ value: "json", label: "JSON" },
];

/** The form of a value: how it is written, and what is in the field. */
export function writtenAs(value: unknown): { kind: Kind; text: string } {
	switch (typeof value) {
		case "string":
			return { kind: "text", text: value };
		case "number":
		case "bigint":
			return { kind: "number", text: String(value) };
		case "boolean":
			return { kind: "boolean", text: String(value) };
		default:
			return { kind: "json", text: stringify(value, 2) ?? "" };
	}
}

/** The value that a form holds. It throws an error that says what is wrong with the text. */
export function valueOf(kind: Kind, text: string): unknown {
	switch (kind) {
		case "text":
			return text;
		case "number": {
			const number = readNumber(text);
			if (number === null) throw new Error("Write a number, such as 12 or 0.5.");
			return number;
		}
		case "boolean":
			return text === "true";
		case "json":
			return parsed(text);
	}
}

function parsed(text: string): unknown {
	let value: unknown;
	try {
		value = parse(text);
	} catch {
		throw new Error('Write JSON, such as ["a", "b"] or {"city": "Ghent"}.');
	}
	if (value === null) throw new Error("A property can’t be null. Delete it instead.");
	return value;
}
