import type { QueryNode, QueryResult } from "../../api/query";
import { counted, number } from "../../ui/format";
import { retentionActors } from "../behind";
import { offsetOf } from "../progress";
import { type Behind, emptyPicture, type HeatCell, type Picture, type Reference, type Sheet } from "../model";
import { breakdownName, fieldsOf, listOf, longDay, share } from "../values";
import { plain, simplePicture } from "./simple";

interface Item {
	values: { count: number; label: string; aggregation_value?: number }[];
	label: string;
	date: string;
	breakdown_value?: unknown;
}

/** A row of a retention with its place among those of its value. */
interface Cohort {
	item: Item;
	row: number;
	value: unknown;
}

/** What is counted in one cell. */
interface Scene {
	query: QueryNode;
	cohorts: Cohort[];
	columns: string[];
	/** Reports whether the time of a cell has not begun, or goes on. */
	ahead: (cohort: Cohort, column: number) => "done" | "open" | "future";
	/** Whether numbers are sums or means of a property. */
	aggregated: boolean;
	reference: Reference;
	/** Whether groups are counted, and not people. */
	groups: boolean;
	/** The name of a value of the breakdown. */
	nameOf: (value: unknown) => string;
}

/** The cohorts that a result is split by, as it has them: numbers as texts, 0 for all people. None where it is not split by cohort. */
export function cohortsIn(query: QueryNode, result: QueryResult): string[] {
	const split = fieldsOf(query, "breakdownFilter");
	if (query.kind !== "RetentionQuery" || (listOf(split, "breakdowns")[0]?.type ?? split.breakdown_type) !== "cohort") return [];
	const items = (Array.isArray(result.results) ? result.results : []) as Item[];
	return [...new Set(items.flatMap((item) => (typeof item.breakdown_value === "string" ? [item.breakdown_value] : [])))];
}

/** A RetentionQuery as a heat map, or as lines. `names` are those of its cohorts. */
export function retentionPicture(query: QueryNode, result: QueryResult, names?: ReadonlyMap<string, string>): Picture {
	const items = (Array.isArray(result.results) ? result.results : []) as Item[];
	const filter = fieldsOf(query, "retentionFilter");
	if (items.length === 0) return emptyPicture("Nobody began", "No event matches the start event in the date range.");
	const rowsOf = new Map<unknown, number>();
	const cohorts = items.map((item) => {
		const row = rowsOf.get(item.breakdown_value) ?? 0;
		rowsOf.set(item.breakdown_value, row + 1);
		return { item, row, value: item.breakdown_value };
	});
	const ids = new Set(cohortsIn(query, result));
	const cohortOf = (id: string) => (id === "0" ? "All people" : (names?.get(id) ?? `Cohort ${id}`));
	const scene: Scene = {
		query,
		cohorts,
		columns: (items[0]?.values ?? []).map((v) => v.label),
		ahead: clock(query, result),
		aggregated: items[0]?.values[0]?.aggregation_value !== undefined,
		reference: filter.retentionReference === "previous" ? "previous" : "total",
		groups: typeof query.aggregation_group_type_index === "number",
		nameOf: (value) => (typeof value === "string" && ids.has(value) ? cohortOf(value) : breakdownName(value)),
	};
	return filter.display === "ActionsLineGraph" || filter.display === "ActionsBar"
		? linesPicture(scene, filter.display === "ActionsBar")
		: heatPicture(scene);
}

const measure = (scene: Scene, c: Cohort, column: number): number => {
	const cell = c.item.values[column];
	return (scene.aggregated ? cell?.aggregation_value : cell?.count) ?? 0;
};

/** What a cell is a share of: its row's first column, or the column before. */
const wholeOf = (scene: Scene, c: Cohort, column: number): number =>
	measure(scene, c, scene.reference === "previous" ? Math.max(0, column - 1) : 0);

/** A cell as a share of its whole. */
function shareOf(scene: Scene, c: Cohort, column: number): number | null {
	const whole = wholeOf(scene, c, column);
	return whole === 0 ? null : measure(scene, c, column) / whole;
}

function behindOf(scene: Scene, c: Cohort, column: number): (() => Behind) | undefined {
	if (!c.item.values[column]?.count) return undefined;
	const value = c.value === null || c.value === undefined ? "" : ` · ${scene.nameOf(c.value)}`;
	return () => ({
		title: `${dateOf(scene, c)}${value}, ${scene.columns[column]}`,
		source: retentionActors(scene.query, c.row, column, c.value),
	});
}

const dateOf = (scene: Scene, c: Cohort): string =>
	longDay(c.item.date.slice(0, 19).replace("T", " "), String(fieldsOf(scene.query, "retentionFilter").period ?? "Day").toLowerCase());

function heatPicture(scene: Scene): Picture {
	const values = [...new Set(scene.cohorts.map((c) => c.value))];
	const groups = values.map((value) => {
		const of = scene.cohorts.filter((c) => c.value === value);
		const mean = meanRow(scene, of);
		return {
			name: value === null || value === undefined ? "" : scene.nameOf(value),
			rows: [
				...(mean ? [mean] : []),
				...of.map((c) => ({
					heads: [{ text: dateOf(scene, c) }, sizeCell(scene, c)],
					cells: scene.columns.map((_, i) => heatCell(scene, c, i)),
				})),
			],
		};
	});
	return {
		label: `Retention of ${counted(scene.cohorts.length, "row")} over ${counted(scene.columns.length, "column")}`,
		body: { is: "heat", heads: ["Began", scene.groups ? "Groups" : "People"], columns: scene.columns, groups },
		sheet: sheet(scene),
	};
}

const sizeCell = (scene: Scene, c: Cohort) => ({ text: number(c.item.values[0]?.count ?? 0), behind: behindOf(scene, c, 0) });

function heatCell(scene: Scene, c: Cohort, column: number): HeatCell {
	const state = scene.ahead(c, column);
	const value = measure(scene, c, column);
	if (state === "future" && value === 0) return { text: "", heat: null };
	const part = shareOf(scene, c, column);
	const [one, many] = scene.groups ? ["group", "groups"] : ["person", "people"];
	const hint = scene.aggregated
		? `${number(value)} from ${counted(c.item.values[column]?.count ?? 0, one, many)}`
		: `${number(value)} of ${number(wholeOf(scene, c, column))}`;
	return {
		text: scene.aggregated ? number(Math.round(value * 100) / 100) : part === null ? "–" : share(part, 1),
		heat: part === null ? null : Math.min(1, part),
		hint: state === "open" ? `${hint}, so far` : hint,
		partial: state === "open",
		behind: behindOf(scene, c, column),
	};
}

/** The mean share of each column over the rows whose time has ended. */
function meanRow(scene: Scene, cohorts: Cohort[]) {
	const mode = String(fieldsOf(scene.query, "retentionFilter").meanRetentionCalculation ?? "simple");
	if (mode === "none" || scene.aggregated || cohorts.length < 2) return undefined;
	const size = cohorts.reduce((sum, c) => sum + (c.item.values[0]?.count ?? 0), 0);
	const cells = scene.columns.map((_, column): HeatCell => {
		const of = cohorts.filter((c) => scene.ahead(c, column) === "done" && shareOf(scene, c, column) !== null);
		if (of.length === 0) return { text: "", heat: null };
		const mean =
			mode === "weighted" ? weighted(scene, of, column) : of.reduce((sum, c) => sum + (shareOf(scene, c, column) ?? 0), 0) / of.length;
		return { text: share(mean, 1), heat: Math.min(1, mean), hint: `Average of ${counted(of.length, "row")}` };
	});
	return {
		heads: [{ text: mode === "weighted" ? "Weighted average" : "Average" }, { text: number(Math.round(size / cohorts.length)) }],
		cells,
	};
}

function weighted(scene: Scene, of: Cohort[], column: number): number {
	const whole = of.reduce((sum, c) => sum + wholeOf(scene, c, column), 0);
	return of.reduce((sum, c) => sum + measure(scene, c, column), 0) / whole;
}

function linesPicture(scene: Scene, bars: boolean): Picture {
	const several = new Set(scene.cohorts.map((c) => c.value)).size > 1;
	return {
		...simplePicture({
			title: "Retention",
			axis: "Since the start",
			names: scene.columns,
			shape: bars ? "bar" : "line",
			format: scene.aggregated ? plain() : plain({ format: "percentage", decimals: 1 }),
			max: scene.aggregated || scene.reference === "previous" ? undefined : 100,
			rows: scene.cohorts.map((c, colour) => ({
				name: several ? `${scene.nameOf(c.value)} · ${dateOf(scene, c)}` : dateOf(scene, c),
				colour,
				points: scene.columns.map((_, i) => {
					if (scene.ahead(c, i) === "future" && measure(scene, c, i) === 0) return null;
					if (scene.aggregated) return measure(scene, c, i);
					const part = shareOf(scene, c, i);
					return part === null ? null : part * 100;
				}),
				behind: (i) => behindOf(scene, c, i)?.(),
			})),
		}),
		sheet: sheet(scene),
	};
}

/** The numbers themselves; a heat map shows shares. */
function sheet(scene: Scene): Sheet {
	const broken = scene.cohorts.some((c) => c.value !== null && c.value !== undefined);
	return {
		columns: [{ title: "Began" }, ...(broken ? [{ title: "Value" }] : []), ...scene.columns.map((title) => ({ title, number: true }))],
		rows: scene.cohorts.map((c) => [
			{ text: dateOf(scene, c) },
			...(broken ? [{ text: scene.nameOf(c.value) }] : []),
			...scene.columns.map((_, i) =>
				scene.ahead(c, i) === "future" && measure(scene, c, i) === 0
					? { text: "" }
					: { text: number(measure(scene, c, i)), behind: behindOf(scene, c, i) },
			),
		]),
	};
}

/** Tells which cells are of times that have not ended: after the range, or after the result was computed. */
function clock(query: QueryNode, result: QueryResult): Scene["ahead"] {
	const filter = fieldsOf(query, "retentionFilter");
	const period = String(filter.period ?? "Day").toLowerCase();
	const range = result.resolved_date_range as { date_to?: string } | undefined;
	const read = period === "hour" ? Date.parse : wallTime;
	const computed = Date.parse(result.last_refresh ?? "") + (period === "hour" ? 0 : offsetOf(result));
	const until = Math.min(computed || Number.POSITIVE_INFINITY, read(range?.date_to ?? "") || Number.POSITIVE_INFINITY);
	const brackets = Array.isArray(filter.retentionCustomBrackets) ? (filter.retentionCustomBrackets as number[]) : undefined;
	const startOf = (column: number): number =>
		brackets ? (column === 0 ? 0 : brackets.slice(0, column - 1).reduce((sum, n) => sum + n, 1)) : column;
	return ({ item }, column) => {
		if (column === 0 && brackets) return "done";
		const first = read(item.date);
		if (later(first, period, startOf(column)) > until) return "future";
		return later(first, period, startOf(column + 1)) > until + 1 ? "open" : "done";
	};
}

/** What a clock in the time zone of an ISO 8601 time shows, in milliseconds as if the zone were UTC. Days and months are counted on it. */
const wallTime = (time: string): number => Date.parse(`${time.replace(/(Z|[+-]\d\d:\d\d)$/, "")}Z`);

function later(from: number, period: string, steps: number): number {
	const at = new Date(from);
	if (period === "month") return at.setUTCMonth(at.getUTCMonth() + steps);
	const hours = { hour: 1, day: 24, week: 168 }[period] ?? 24;
	return from + steps * hours * 3_600_000;
}
