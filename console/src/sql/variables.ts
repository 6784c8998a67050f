/** An insight variable of the project: docs/saved-insights.md. */
export interface Variable {
	id: string;
	name: string;
	code_name: string;
	type: "String" | "Number" | "Boolean" | "List" | "Date";
	default_value: unknown;
	values: string[] | null;
	is_multi: boolean;
}

/** What a HogQLQuery says of a variable. */
export interface VariableUse {
	variableId: string;
	code_name: string;
	value?: unknown;
	isNull?: boolean;
}

/** The names of the variables that a text uses, each once, in their order. */
export function usedNames(text: string): string[] {
	const found = [...text.matchAll(/\{\s*variables\s*\.\s*([A-Za-z_]\w*)/g)].map((m) => m[1] ?? "");
	return [...new Set(found)];
}

/** Why no variable can have a name that a text uses; an empty text when one can. The server makes names of lower-case letters. */
export function variableNameMistake(name: string): string {
	const lower = name.toLowerCase();
	return name === lower ? "" : `Names of variables are in lower case: write {variables.${lower}} in place of {variables.${name}}.`;
}

/** Reports whether a text has a place for filters. */
export const usesFilters = (text: string): boolean => /\{\s*filters\b/.test(text);

/**
 * The field `variables` of a query: those that it uses, with the values that were given. What is not defined, or not known to be, stays as it
 * was before.
 */
export function toQuery(
	text: string,
	defined: readonly Variable[],
	given: Record<string, unknown>,
	before?: Record<string, VariableUse> | null,
): Record<string, VariableUse> | undefined {
	const used = usedNames(text).flatMap((name): [string, VariableUse][] => {
		const variable = defined.find((v) => v.code_name === name);
		if (variable) return [[variable.id, useOf(variable, given[name])]];
		return Object.entries(before ?? {}).filter(([, use]) => use.code_name === name);
	});
	return used.length > 0 ? Object.fromEntries(used) : undefined;
}

function useOf({ id, code_name }: Variable, value: unknown): VariableUse {
	const use: VariableUse = { variableId: id, code_name };
	if (value === null) use.isNull = true;
	else if (value !== undefined) use.value = value;
	return use;
}

/** The values in the field `variables` of a query, by name. */
export function fromQuery(variables: Record<string, VariableUse> | undefined): Record<string, unknown> {
	const given: Record<string, unknown> = {};
	for (const use of Object.values(variables ?? {})) {
		if (use.isNull) given[use.code_name] = null;
		else if (use.value !== undefined) given[use.code_name] = use.value;
	}
	return given;
}
