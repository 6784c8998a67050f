import { type Fields, fieldsOf, listOf, textOf, withFields } from "./json";

/** The formulas of a trendsFilter, as the nodes that it has or would have. */
export function formulasOf(filter: Fields): Fields[] {
	const nodes = listOf(filter.formulaNodes);
	if (nodes.length > 0) return nodes.map(fieldsOf);
	const list = listOf(filter.formulas);
	if (list.length > 0) return list.map((formula) => ({ formula: textOf(formula) }));
	return textOf(filter.formula) ? [{ formula: filter.formula }] : [];
}

/** A trendsFilter with other formulas. They are written as nodes, in place of the two older forms. */
export function withFormulas(filter: Fields, formulas: Fields[]): Fields {
	return withFields(filter, {
		formula: undefined,
		formulas: undefined,
		formulaNodes: formulas.length > 0 ? formulas : undefined,
	});
}

/** What is wrong with a formula over so many series; empty if nothing is. */
export function mistakeIn(formula: string, letters: readonly string[]): string {
	const unknown = (formula.match(/[A-Za-z]+/g) ?? []).find((name) => !letters.includes(name.toUpperCase()));
	if (unknown) return `There is no series ${unknown}.`;
	return "";
}
