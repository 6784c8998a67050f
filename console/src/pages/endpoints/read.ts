import type { Raw } from "../../api/client";
import { parse } from "../../api/json";
import { isNumeric, type QueryResult, typesOf } from "../../api/query";
import type { Ran } from "./try";

/** Rows to show in a grid, whatever the format that they came in. */
interface Shown {
	columns: { title: string; number?: boolean; detail?: string }[];
	rows: unknown[][];
}

/** What there is to show of an answer. */
interface Read {
	/** Its rows; null when it is no list of rows. */
	shown: Shown | null;
	/** The whole of it, when it is JSON. */
	result: QueryResult | null;
	/** The cursor of the page after it; empty when there is none. */
	cursor: string;
}

/** Reads an answer of any format. */
export function readAnswer({ raw, text: body, format }: Pick<Ran, "text" | "format"> & { raw: Pick<Raw, "nextCursor"> }): Read {
	if (body !== null && (format === "arrays" || format === "objects")) {
		const result = JSON.parse(body) as QueryResult & { next_cursor?: string | null };
		return { shown: rowsOf(format, parse(body) as QueryResult), result, cursor: result.next_cursor ?? "" };
	}
	const lines = body !== null && format === "ndjson" ? body.split("\n").filter(Boolean) : null;
	return { shown: lines && ofObjects(lines.map((line) => parse(line))), result: null, cursor: raw.nextCursor };
}

function rowsOf(format: string, { results, columns, types }: QueryResult): Shown | null {
	if (!Array.isArray(results)) return null;
	if (format === "objects") return ofObjects(results);
	if (!Array.isArray(columns) || !results.every(Array.isArray)) return null;
	const typed = typesOf(types, columns.length);
	return {
		columns: columns.map((title, i) => ({ title, detail: typed[i] ?? "", number: isNumeric(typed[i] ?? "") })),
		rows: results as unknown[][],
	};
}

function ofObjects(rows: unknown[]): Shown | null {
	if (!rows.every((row) => typeof row === "object" && row !== null && !Array.isArray(row))) return null;
	const names = Object.keys((rows[0] as Record<string, unknown> | undefined) ?? {});
	return {
		columns: names.map((title) => ({ title, number: rows.every((row) => isNumber((row as Record<string, unknown>)[title])) })),
		rows: rows.map((row) => names.map((name) => (row as Record<string, unknown>)[name])),
	};
}

const isNumber = (value: unknown): boolean => typeof value === "number" || typeof value === "bigint";
