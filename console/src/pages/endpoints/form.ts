import { readNumber, stringify } from "../../api/json";
import type { Schema } from "./openapi";

/** What the form holds for a run. Texts are as typed; an empty one is not sent. */
export interface RunForm {
	/** A text, or the chosen values of a list, by the name of the variable. */
	values: Record<string, string | string[]>;
	/** Variables that are sent as null. */
	nulls: Record<string, boolean>;
	version: string;
	limit: string;
	offset: string;
	refresh: string;
	format: string;
	/** Whether 64-bit integers come as text. */
	exact: boolean;
}

export const emptyForm: RunForm = {
	values: {},
	nulls: {},
	version: "",
	limit: "100",
	offset: "",
	refresh: "cache",
	format: "arrays",
	exact: false,
};

/** A variable of an endpoint. */
export interface Variable {
	name: string;
	schema: Schema;
	required: boolean;
}

/** How a variable is asked for. */
export type Control = "text" | "number" | "boolean" | "choice" | "choices" | "list" | "date" | "time";

export function controlOf({ schema }: Variable): Control {
	if (schema.type === "array") return schema.items?.enum ? "choices" : "list";
	if (schema.enum) return "choice";
	if (schema.type === "boolean") return "boolean";
	if (schema.type === "number" || schema.type === "integer") return "number";
	if (schema.format === "date") return "date";
	return schema.format === "date-time" ? "time" : "text";
}

/** A request that runs an endpoint, and what is wrong with the form, by field. */
export interface RunRequest {
	body: Record<string, unknown>;
	mistakes: Record<string, string>;
}

/** Makes the body of a run. Only what was given is in it. */
export function requestOf(form: RunForm, variables: readonly Variable[], pages: boolean): RunRequest {
	const mistakes: Record<string, string> = {};
	const body: Record<string, unknown> = {};
	const values: Record<string, unknown> = {};
	for (const variable of variables) {
		try {
			const value = valueOf(form, variable);
			if (value !== undefined) values[variable.name] = value;
		} catch (error) {
			mistakes[variable.name] = error instanceof Error ? error.message : String(error);
		}
	}
	if (Object.keys(values).length > 0) body.variables = values;
	const whole = (name: "limit" | "offset" | "version", least: number) => {
		const text = form[name].trim();
		if (!text) return;
		const value = Number(text);
		if (!Number.isSafeInteger(value) || value < least) mistakes[`(${name})`] = `A whole number of at least ${least}`;
		else body[name] = value;
	};
	if (pages) {
		whole("limit", 1);
		whole("offset", 0);
		if (body.offset !== undefined && body.limit === undefined) mistakes["(offset)"] = "An offset needs a limit";
	}
	whole("version", 1);
	if (form.refresh !== "cache") body.refresh = form.refresh;
	return { body, mistakes };
}

/** The value of a variable; undefined when the run leaves it out. */
function valueOf(form: RunForm, variable: Variable): unknown {
	if (form.nulls[variable.name]) return null;
	const given = form.values[variable.name] ?? "";
	if (Array.isArray(given)) return given.length > 0 ? given : undefined;
	if (given === "") return undefined;
	switch (controlOf(variable)) {
		case "number":
			return numberOf(given);
		case "boolean":
			return given === "true";
		case "choice":
			return variable.schema.enum?.find((choice) => String(choice) === given) ?? given;
		case "list":
			return given
				.split("\n")
				.map((line) => line.trim())
				.filter(Boolean);
		default:
			return given;
	}
}

function numberOf(text: string): number | bigint {
	const value = readNumber(text);
	if (value === null) throw new Error("Not a number");
	return value;
}

/** What a field shows while it is empty. */
export function placeholderOf({ schema, required }: Variable): string {
	if (schema.default !== undefined && schema.default !== null) {
		return typeof schema.default === "object" ? stringify(schema.default) : String(schema.default);
	}
	return required ? "Required" : "Not given";
}

/** The path of a run below the project, with the ending that names its format. */
export function runPath(name: string, form: Pick<RunForm, "format" | "exact">): string {
	const ending = form.format === "arrays" ? "" : `.${form.format}`;
	const exact = form.exact && !["csv", "parquet", "arrow"].includes(form.format) ? "?int64=string" : "";
	return `endpoints/${encodeURIComponent(name)}/run${ending}${exact}`;
}
