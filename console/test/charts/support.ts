import type { QueryNode, QueryResult } from "../../src/api/query";
import type { Behind, Paint, Picture, Plot, Room } from "../../src/charts/model";
import { pictureOf } from "../../src/charts/picture";
import all from "./results.json";

/** A query with the result that a server gave. */
export interface Sample {
	query: QueryNode;
	result: QueryResult;
}

/** Queries and results of a server with the events of a code repository. Those of countries, visits and boxes have other numbers. */
export const samples = all as unknown as Record<string, Sample>;

export function sample(name: string): Sample {
	const found = samples[name];
	if (!found) throw new Error(`there is no sample ${name}`);
	return structuredClone(found);
}

/** The picture of a sample, with other fields in the filter of its query. */
export function pictureWith(name: string, filter = "", fields: Record<string, unknown> = {}): Picture {
	const { query, result } = sample(name);
	if (filter) query[filter] = { ...(query[filter] as object), ...fields };
	return pictureOf(query, result);
}

export const paint: Paint = {
	text: "#111111",
	soft: "#555555",
	line: "#dddddd",
	surface: "#ffffff",
	raised: "#ffffff",
	accent: "#3451d1",
	good: "#00aa00",
	bad: "#aa0000",
	series: ["#000001", "#000002", "#000003", "#000004", "#000005", "#000006", "#000007", "#000008", "#000009", "#00000a"],
	font: "sans-serif",
};

export const room: Room = { small: false, width: 800, hidden: new Set() };

/** The options of a plot, as an object whose fields can be looked at. */
// oxlint-disable-next-line typescript/no-explicit-any
export function optionOf(picture: Picture, more: Partial<Room> = {}): any {
	return plotOf(picture).option(paint, { ...room, ...more });
}

export function plotOf(picture: Picture): Plot {
	if (picture.body.is !== "plot") throw new Error(`the picture is ${picture.body.is}, not a plot`);
	return picture.body;
}

/** The texts of the table. */
export const cells = (picture: Picture): string[][] => picture.sheet.rows.map((row) => row.map((cell) => cell.text));

/** What is behind a cell of the table, without the insight it is of. */
export function behind(picture: Picture, row: number, column: number): (Omit<Behind, "source"> & Record<string, unknown>) | undefined {
	const found = picture.sheet.rows[row]?.[column]?.behind?.();
	if (!found) return undefined;
	const { source, ...rest } = found;
	const { source: _, ...fields } = source;
	return { ...rest, ...fields };
}
