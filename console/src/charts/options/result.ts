import { isNumeric, isTime, type QueryResult, typesOf } from "../../api/query";
import { counted, number, text } from "../../ui/format";
import { emptyPicture, type Picture } from "../model";
import { breakdownName, fieldsOf, type Fields, formatValue, share, type ValueFormat } from "../values";
import { base } from "./axes";
import { plain, type Row, simplePicture } from "./simple";
import { rowsPicture } from "./tables";

/** A column of numbers that is drawn. */
export interface YColumn {
	column: string;
	settings?: {
		formatting?: { prefix?: string; suffix?: string; style?: "none" | "number" | "short" | "percent"; decimalPlaces?: number };
		display?: { label?: string; displayType?: "auto" | "line" | "bar" | "area"; yAxisPosition?: "left" | "right" };
	};
}

/** How rows are drawn: the fields of a DataVisualizationNode. */
export interface ResultSettings {
	/** ActionsTable, ActionsLineGraph, ActionsBar, ActionsStackedBar, ActionsAreaGraph, ActionsPie or BoldNumber. */
	display?: string;
	chartSettings?: {
		xAxis?: { column: string };
		yAxis?: YColumn[];
		/** The column whose values are the series. */
		seriesBreakdownColumn?: string | null;
		goalLines?: { label: string; value: number }[];
		stackBars100?: boolean;
		leftYAxisSettings?: { scale?: "linear" | "logarithmic"; startAtZero?: boolean };
		[field: string]: unknown;
	};
	[field: string]: unknown;
}

/** The rows of a result. */
export interface Rows {
	columns: string[];
	/** The ClickHouse type of each column; empty texts where it is not known. */
	types: string[];
	rows: unknown[][];
}

/** The rows of a result, whose types may be beside names. */
export function readRows(result: QueryResult): Rows {
	const columns = result.columns ?? [];
	const rows = (Array.isArray(result.results) ? result.results : []).filter((row) => Array.isArray(row)) as unknown[][];
	return { columns, types: typesOf(result.types, columns.length), rows };
}

/** A number in a row. Large ones are bigints, decimal ones texts; null for what is none. */
export function numberIn(value: unknown): number | null {
	if (typeof value === "number") return value;
	if (typeof value === "boolean" || typeof value === "bigint") return Number(value);
	if (typeof value !== "string" || value.trim() === "") return null;
	const n = Number(value);
	return Number.isNaN(n) ? null : n;
}

/** The columns that hold numbers, by their types, or by their values where types are not known. */
export function numericColumns({ columns, types, rows }: Rows): string[] {
	return columns.filter((_, i) =>
		types[i]
			? isNumeric(types[i])
			: rows.length > 0 && rows.every((row) => row[i] === null || typeof row[i] === "number" || typeof row[i] === "bigint"),
	);
}

/** The columns to draw, where the settings name none: a time or a name against all numbers, with a series for each value of another name. */
export function chosenColumns(data: Rows, settings: ResultSettings): { x: string; y: YColumn[]; series: string | null } {
	const chart = settings.chartSettings ?? {};
	const has = (name: string | null | undefined): name is string => typeof name === "string" && data.columns.includes(name);
	const numbers = numericColumns(data);
	const series = has(chart.seriesBreakdownColumn) ? chart.seriesBreakdownColumn : null;
	const names = data.columns.filter((name) => !numbers.includes(name) && name !== series);
	const time = names.find((name) => isTime(data.types[data.columns.indexOf(name)] ?? ""));
	const x = has(chart.xAxis?.column) ? chart.xAxis.column : (time ?? names[0] ?? data.columns[0] ?? "");
	const given = (chart.yAxis ?? []).filter((y) => has(y.column));
	const y = given.length > 0 ? given : numbers.filter((name) => name !== x && name !== series).map((column) => ({ column }));
	return { x, y, series: series ?? (given.length === 0 && chart.seriesBreakdownColumn === undefined ? usualSeries(data, x, names) : null) };
}

/** The column to tell rows of the same place apart, if there are such rows: the first that is neither on the x axis nor a number. */
function usualSeries(data: Rows, x: string, names: string[]): string | null {
	const series = names.find((name) => name !== x);
	return series !== undefined && repeats(data, data.columns.indexOf(x), -1) > 0 ? series : null;
}

/** How a column's numbers are written. */
function formatOf(y: YColumn | undefined): ValueFormat {
	const f = y?.settings?.formatting ?? {};
	const format = f.style === "percent" ? "percentage" : f.style === "short" ? "short" : "numeric";
	return plain({
		format,
		prefix: f.prefix ?? "",
		postfix: f.suffix ?? "",
		...(typeof f.decimalPlaces === "number" && { decimals: Math.max(0, Math.min(20, f.decimalPlaces)) }),
	});
}

/** At most so many series of a result are drawn. */
const mostSeries = 50;

/** Draws rows as the settings say: a table, a number, a pie, or lines, bars or areas. */
export function resultPicture(result: QueryResult, settings: ResultSettings): Picture {
	const data = readRows(result);
	const display = settings.display ?? "ActionsTable";
	if (data.rows.length === 0 || display === "ActionsTable" || display === "Auto") return rowsPicture(result);
	const chosen = chosenColumns(data, settings);
	if (chosen.y.length === 0) return emptyPicture("There is no number to draw", "Choose a column that holds numbers.");
	const picture = draw(data, chosen, display, settings);
	return picture ?? rowsPicture(result);
}

type Chosen = ReturnType<typeof chosenColumns>;

function draw(data: Rows, chosen: Chosen, display: string, settings: ResultSettings): Picture | undefined {
	switch (display) {
		case "BoldNumber":
			return bigNumber(data, chosen);
		case "ActionsPie":
			return pie(data, chosen);
		case "ActionsLineGraph":
		case "ActionsBar":
		case "ActionsStackedBar":
		case "ActionsAreaGraph":
			return overX(data, chosen, display, settings);
	}
	return undefined;
}

/** The first number of the first row. */
function bigNumber(data: Rows, { y }: Chosen): Picture {
	const first = y[0] as YColumn;
	const value = numberIn(data.rows[0]?.[data.columns.indexOf(first.column)]);
	const name = first.settings?.display?.label || first.column;
	const written = formatValue(value, formatOf(first));
	return {
		label: `${name}: ${written}`,
		body: { is: "figures", figures: [{ name, text: written }] },
		sheet: { columns: [{ title: name, number: true }], rows: [[{ text: written }]] },
	};
}

function pie(data: Rows, { x, y }: Chosen): Picture {
	const first = y[0] as YColumn;
	const at = { x: data.columns.indexOf(x), y: data.columns.indexOf(first.column) };
	const format = formatOf(first);
	const slices = data.rows.slice(0, mostSeries).map((row) => ({ name: valueText(row[at.x]), value: numberIn(row[at.y]) ?? 0 }));
	const whole = slices.reduce((sum, s) => sum + Math.max(0, s.value), 0);
	return {
		label: `Pie chart of ${first.column} by ${x}`,
		legend: slices.map((s, colour) => ({ name: s.name, colour })),
		note: data.rows.length > mostSeries ? `Only the first ${mostSeries} rows are drawn.` : undefined,
		sheet: {
			columns: [{ title: x }, { title: first.column, number: true }, { title: "Share", number: true }],
			rows: slices.map((s) => [{ text: s.name }, { text: formatValue(s.value, format) }, { text: share(s.value, whole) }]),
		},
		body: {
			is: "plot",
			height: 320,
			option: (paint, room) => ({
				...base(paint),
				series: [
					{
						id: "pie",
						type: "pie",
						radius: [0, "76%"],
						data: slices
							.map((s, i) => ({ ...s, i }))
							.filter(({ i, value }) => !room.hidden.has(i) && value > 0)
							.map(({ value, i }) => ({ value, name: String(i), itemStyle: { color: paint.series[i % paint.series.length] } })),
						itemStyle: { borderColor: paint.surface, borderWidth: 1.5 },
						label: {
							show: !room.small && room.width > 420,
							color: paint.text,
							lineHeight: 15,
							formatter: (p: { name: string; value: number }) =>
								`${slices[Number(p.name)]?.name ?? ""}\n${formatValue(p.value, format)} (${share(p.value, whole)})`,
						},
						labelLayout: { hideOverlap: true },
					},
				],
			}),
		},
	};
}

const valueText = (value: unknown): string => (value === null || value === "" ? breakdownName(null) : text(value));

function overX(data: Rows, chosen: Chosen, display: string, settings: ResultSettings): Picture {
	const chart = settings.chartSettings ?? {};
	const { x, y, series } = chosen;
	const at = (name: string) => data.columns.indexOf(name);
	const places = placesOf(data, at(x));
	const rows: Row[] = [];
	let left = 0;
	for (const column of y) {
		const name = column.settings?.display?.label || column.column;
		for (const [value, points] of pointsOf(data, places, at(x), at(column.column), series === null ? -1 : at(series))) {
			if (rows.length >= mostSeries) {
				left++;
				continue;
			}
			const shape = column.settings?.display?.displayType;
			rows.push({
				name: series === null ? name : y.length > 1 ? `${value} · ${name}` : value,
				colour: rows.length,
				points,
				right: column.settings?.display?.yAxisPosition === "right",
				shape: shape === "line" || shape === "bar" || shape === "area" ? shape : undefined,
			});
		}
	}
	const axis = fieldsOf(chart as Fields, "leftYAxisSettings");
	const lost = repeats(data, at(x), series === null ? -1 : at(series));
	const notes: string[] = [];
	if (left > 0) notes.push(`Only ${mostSeries} of ${number(mostSeries + left)} series are drawn.`);
	if (lost > 0)
		notes.push(
			`Of rows with the same ${series === null ? x : `${x} and ${series}`}, only the last is drawn: ${counted(lost, "row")} left out.`,
		);
	return {
		...simplePicture({
			title: `${y.map((c) => c.column).join(", ")} by ${x}`,
			axis: x,
			names: places.names,
			shape: display === "ActionsLineGraph" ? "line" : display === "ActionsAreaGraph" ? "area" : "bar",
			stacked: display === "ActionsStackedBar" || display === "ActionsAreaGraph",
			percent: chart.stackBars100 === true && display !== "ActionsLineGraph" && display !== "ActionsBar",
			log: axis.scale === "logarithmic",
			fromLeast: axis.startAtZero === false,
			goals: Array.isArray(chart.goalLines) ? chart.goalLines : [],
			format: formatOf(y[0]),
			rows,
		}),
		note: notes.join(" ") || undefined,
	};
}

interface Places {
	/** The place of each value, by its text. */
	of: Map<string, number>;
	names: string[];
}

/** The places on the x axis: times in their order, anything else as it comes. */
function placesOf(data: Rows, at: number): Places {
	const found = [...new Set(data.rows.map((row) => valueText(row[at])))];
	if (isTime(data.types[at] ?? "")) {
		const times = new Map(found.map((value) => [value, timeOf(value)]));
		found.sort((a, b) => Number(times.get(a)) - Number(times.get(b)) || (a < b ? -1 : 1));
	}
	const short = found.map(placeText);
	const last = new Map(short.map((name, i) => [name, i]));
	const shared = new Set(short.filter((name, i) => last.get(name) !== i));
	const names = found.map((value, i) => (shared.has(short[i] ?? "") ? value.replace(moment, "$1 $2$3") : (short[i] ?? "")));
	return { of: new Map(found.map((value, i) => [value, i])), names };
}

/** When a text is, in milliseconds since 1970. What is no time comes last. */
const timeOf = (value: string): number => {
	const time = Date.parse(value);
	return Number.isNaN(time) ? Number.MAX_VALUE : time;
};

/** A time in whole minutes, with its offset from UTC. */
const moment = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::00(?:\.0+)?)?(Z|[+-]\d\d:\d\d)?$/;

/** What a place is called where the offset need not tell it from another, such as the same hour before the clocks change. */
const placeText = (value: string): string => value.replace(moment, "$1 $2").replace(/ 00:00$/, "");

/** The numbers of a column at their places, for each value of the series' column. */
function pointsOf(data: Rows, places: Places, x: number, y: number, series: number): Map<string, (number | null)[]> {
	const out = new Map<string, (number | null)[]>();
	for (const row of data.rows) {
		const name = series < 0 ? "" : valueText(row[series]);
		let points = out.get(name);
		if (!points) {
			points = Array.from({ length: places.names.length }, () => null);
			out.set(name, points);
		}
		const place = places.of.get(valueText(row[x]));
		if (place !== undefined) points[place] = numberIn(row[y]);
	}
	return out;
}

/** How many rows have the same place, in the same series, as another one: a series has one number for each place. */
function repeats(data: Rows, x: number, series: number): number {
	const found = new Set(data.rows.map((row) => JSON.stringify([valueText(row[x]), series < 0 ? "" : valueText(row[series])])));
	return data.rows.length - found.size;
}
