/** An object of JSON whose fields are not all known. */
export type Fields = Record<string, unknown>;

/** Reports whether a value is an object, and no list. */
export function isFields(value: unknown): value is Fields {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object at a field; empty for anything else. */
export function fieldsOf(value: unknown): Fields {
	return isFields(value) ? value : {};
}

/** The list at a field; empty for anything else. */
export function listOf(value: unknown): unknown[] {
	return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string {
	return typeof value === "string" ? value : "";
}

export function numberOf(value: unknown): number | null {
	return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** An object with some fields replaced, in their old places; undefined takes a field out. What is not named stays as it is. */
export function withFields<T extends Fields>(node: T, changes: Fields): T {
	const out: Fields = { ...node };
	for (const [name, value] of Object.entries(changes)) {
		if (value === undefined) delete out[name];
		else out[name] = value;
	}
	return out as T;
}

/**
 * An object with some fields of one of its own objects replaced, such as those of trendsFilter. An inner object that the change
 * leaves empty is taken out, unless it was there before.
 */
export function withInner<T extends Fields>(node: T, inner: string, changes: Fields): T {
	const next = withFields(fieldsOf(node[inner]), changes);
	if (Object.keys(next).length === 0 && !isFields(node[inner])) return node;
	return withFields(node, { [inner]: next });
}

/** A list with the item at a place replaced, or taken out by undefined. */
export function withItem<T>(list: readonly T[], at: number, item: T | undefined): T[] {
	return item === undefined ? list.filter((_, i) => i !== at) : list.map((old, i) => (i === at ? item : old));
}

/** A list with an item moved to another place; the same list where that is none. */
export function withMoved<T>(list: readonly T[], from: number, to: number): T[] {
	const out = [...list];
	const [item] = out.splice(from, 1);
	if (item === undefined || to < 0 || to > out.length) return [...list];
	out.splice(to, 0, item);
	return out;
}
