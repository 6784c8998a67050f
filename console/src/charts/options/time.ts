import type { QueryNode, QueryResult } from "../../api/query";
import { colourAt, type Paint, type Picture, type Plot, type Room, type Sheet } from "../model";
import { goesOn } from "../progress";
import { type Fields, fieldsOf, formatValue, intervalOf, listed, longDay, shortDay, share, type ValueFormat, valueFormat } from "../values";
import { base, below, categories, grid, pointer, titled, tooltip, tooltipText, values } from "./axes";
import { behindLine, cellBehind, type Line } from "./lines";

type Options = Record<string, unknown>;

/** How lines are drawn. */
export interface Look {
	shape: "line" | "area" | "bar";
	stacked: boolean;
}

/** The looks of the displays that show points over time. */
export const looks: Record<string, Look> = {
	ActionsLineGraph: { shape: "line", stacked: false },
	ActionsLineGraphCumulative: { shape: "line", stacked: false },
	ActionsAreaGraph: { shape: "area", stacked: true },
	ActionsBar: { shape: "bar", stacked: true },
	ActionsStackedBar: { shape: "bar", stacked: true },
	ActionsUnstackedBar: { shape: "bar", stacked: false },
};

/** What is drawn beside the numbers of a plot over time. */
interface Scene {
	query: QueryNode;
	filter: Fields;
	format: ValueFormat;
	lines: Line[];
	days: string[];
	look: Look;
	/** Shares of the bucket in place of numbers. */
	percent: boolean;
	log: boolean;
	/** Whether the last bucket goes on. */
	open: boolean;
}

/** A trend over time, as lines, areas or bars. */
export function timePicture(query: QueryNode, result: QueryResult, lines: Line[], look: Look): Picture {
	const filter = fieldsOf(query, "trendsFilter");
	const days = (lines.find((l) => !l.previous) ?? lines[0])?.days ?? [];
	const percent = filter.showPercentStackView === true && look.stacked;
	const scene: Scene = {
		query,
		filter,
		format: valueFormat(filter),
		lines,
		days,
		look,
		percent,
		log: filter.yAxisScaleType === "log10" && !percent,
		open: goesOn(query, result, days.at(-1)),
	};
	const noun = { line: "Line chart", area: "Area chart", bar: "Bar chart" }[look.shape];
	const interval = intervalOf(query);
	return {
		label: `${noun} of ${listed(lines.map((l) => l.name))} by ${interval}, from ${longDay(days[0] ?? "", interval)} to ${longDay(days.at(-1) ?? "", interval)}`,
		body: plot(scene),
		sheet: sheet(scene),
		legend: lines.map((l) => ({ name: l.name, colour: l.colour, dashed: l.previous, hidden: l.hidden })),
	};
}

function plot(scene: Scene): Plot {
	return {
		is: "plot",
		height: 320,
		option: (paint, room) => option(scene, paint, room),
		pick: ({ series, index }) => {
			const line = scene.lines[Number.parseInt(series, 10)];
			return line && behindLine(scene.query, line, index);
		},
		near: scene.look.shape === "bar" ? undefined : (index, value, room) => nearest(scene, index, value, room),
	};
}

const shownLines = (scene: Scene, room: Room): Line[] => scene.lines.filter((l) => !room.hidden.has(l.place));

/** What is drawn of a line at a place: its number, or its share of the bucket. */
function drawn(scene: Scene, line: Line, index: number, sums: number[]): number | null {
	const value = line.points[index];
	if (value === undefined || value === null) return null;
	if (scene.log && value <= 0) return null;
	if (!scene.percent) return value;
	return sums[index] ? (value / sums[index]) * 100 : 0;
}

function sumsOf(lines: Line[], previous: boolean, length: number): number[] {
	const sums = Array.from({ length }, () => 0);
	for (const l of lines) {
		if (l.previous !== previous) continue;
		for (const [i, value] of l.points.entries()) sums[i] = (sums[i] ?? 0) + value;
	}
	return sums;
}

function option(scene: Scene, paint: Paint, room: Room): Options {
	const { filter, format, days, look } = scene;
	const interval = intervalOf(scene.query);
	const shown = shownLines(scene, room);
	const length = Math.max(days.length, ...shown.map((l) => l.points.length));
	const sums = { now: sumsOf(shown, false, length), before: sumsOf(shown, true, length) };
	const data = (line: Line) => line.points.map((_, i) => drawn(scene, line, i, line.previous ? sums.before : sums.now));
	const twoAxes = filter.showMultipleYAxes === true && shown.length > 1 && !scene.percent;
	const axisFormat = scene.percent ? percentFormat : format;
	const goals = goalsOf(filter);
	const axis = (more: Options) =>
		values(paint, axisFormat, {
			type: scene.log ? "log" : "value",
			max: scene.percent
				? 100
				: (extent: { max: number }) => (goals.some((g) => g.value > extent.max) ? Math.max(...goals.map((g) => g.value)) : null),
			...more,
		});
	const series: Options[] = [];
	for (const line of shown) {
		const axisIndex = twoAxes && line !== shown[0] ? 1 : 0;
		series.push(...seriesOf(scene, line, data(line), paint, room, axisIndex, shown.length));
	}
	if (series[0] && goals.length > 0) series[0].markLine = goalLines(goals, paint, format);
	series.push(...extras(scene, shown, paint));
	return {
		...base(paint),
		grid: grid(room),
		tooltip: tooltip(paint, {
			trigger: "axis",
			axisPointer: pointer(paint, look.shape === "bar" ? "shadow" : "line"),
			formatter: (given: { dataIndex: number; seriesId: string; marker: string }[]) => tooltipOf(scene, shown, sums, given),
		}),
		xAxis: categories(
			paint,
			days.map((day) => shortDay(day, interval)),
			{ boundaryGap: look.shape === "bar", ...titled(filter.xAxisLabel, 26) },
		),
		yAxis: twoAxes ? [axis(titled(filter.yAxisLabel, 44)), axis({ splitLine: { show: false } })] : axis(titled(filter.yAxisLabel, 44)),
		series,
	};
}

const percentFormat: ValueFormat = { format: "percentage", prefix: "", postfix: "", decimals: 1, minDecimals: 0 };

function seriesOf(
	scene: Scene,
	line: Line,
	data: (number | null)[],
	paint: Paint,
	room: Room,
	yAxisIndex: number,
	count: number,
): Options[] {
	const { look, filter, format } = scene;
	const colour = colourAt(paint, line.colour);
	const open = scene.open && !line.previous;
	const common: Options = {
		id: String(line.place),
		name: line.name,
		yAxisIndex,
		itemStyle: { color: colour, opacity: line.previous ? 0.5 : 1 },
		label: {
			show: filter.showValuesOnSeries === true && !room.small,
			position: look.shape === "bar" && look.stacked ? "inside" : "top",
			color: look.shape === "bar" && look.stacked ? paint.surface : paint.text,
			fontSize: 10,
			formatter: ({ dataIndex }: { dataIndex: number }) => labelOf(line.points[dataIndex], format),
		},
		labelLayout: { hideOverlap: true },
		emphasis: { disabled: count > 12, focus: "series" },
		...below(count),
		stack: look.stacked ? (line.previous ? "previous" : "current") : undefined,
	};
	if (look.shape === "bar") {
		const cells = data.map((value, i) =>
			open && i === data.length - 1 ? { value, itemStyle: { opacity: 0.55, decal: { symbol: "none" } } } : value,
		);
		return [{ ...common, type: "bar", barMaxWidth: 48, barCategoryGap: "25%", data: cells }];
	}
	const drawnLine: Options = {
		...common,
		type: "line",
		showSymbol: data.length === 1 || (data.length <= 40 && count <= 6 && !room.small),
		symbolSize: 5,
		sampling: data.length > 400 && !look.stacked ? "lttb" : undefined,
		lineStyle: { color: colour, width: 2, type: line.previous ? [4, 4] : "solid", opacity: line.previous ? 0.6 : 1 },
		areaStyle: look.shape === "area" ? { color: colour, opacity: line.previous ? 0.12 : 0.28 } : undefined,
		triggerLineEvent: false,
		data,
	};
	if (!open || look.shape === "area" || data.length < 2) return [drawnLine];
	const last = data.length - 1;
	return [
		{ ...drawnLine, data: data.map((value, i) => (i === last ? null : value)) },
		{
			...drawnLine,
			id: `${line.place}:open`,
			lineStyle: { color: colour, width: 2, type: [3, 4] },
			label: { ...(common.label as Options), show: false },
			data: data.map((value, i) => (i >= last - 1 ? value : null)),
		},
	];
}

const labelOf = (value: number | undefined, format: ValueFormat): string => (value ? formatValue(value, format) : "");

function tooltipOf(
	scene: Scene,
	shown: Line[],
	sums: { now: number[]; before: number[] },
	given: { dataIndex: number; seriesId: string; marker: string }[],
): string {
	const index = given[0]?.dataIndex ?? 0;
	const markers = new Map(given.map((g) => [Number.parseInt(g.seriesId, 10), g.marker]));
	const rows = shown
		.filter((l) => l.points[index] !== undefined)
		.map((l) => {
			const value = l.points[index] ?? 0;
			const of = (l.previous ? sums.before : sums.now)[index] ?? 0;
			const text = formatValue(value, scene.format);
			return { name: l.name, value, marker: markers.get(l.place), text: scene.percent ? `${text} (${share(value, of)})` : text };
		});
	const going = scene.open && index === scene.days.length - 1 ? " (so far)" : "";
	return tooltipText(longDay(scene.days[index] ?? "", intervalOf(scene.query)) + going, rows);
}

/** The line next to a place in the plot: the area around it, or the nearest line. */
function nearest(scene: Scene, index: number, value: (axis: number) => number, room: Room) {
	const shown = shownLines(scene, room).filter((l) => l.points[index] !== undefined);
	const at = value(0);
	if (scene.look.stacked) {
		const current = shown.filter((l) => !l.previous);
		const sums = sumsOf(current, false, index + 1);
		let top = 0;
		for (const l of current) {
			top += drawn(scene, l, index, sums) ?? 0;
			if (at <= top) return behindLine(scene.query, l, index);
		}
		return undefined;
	}
	const twoAxes = scene.filter.showMultipleYAxes === true && shown.length > 1;
	let best: Line | undefined;
	let distance = Number.POSITIVE_INFINITY;
	for (const l of shown) {
		const target = twoAxes && l !== shown[0] ? value(1) : at;
		const far = Math.abs((l.points[index] ?? 0) - target) / (twoAxes ? Math.max(1, ...l.points) : 1);
		if (far < distance) [best, distance] = [l, far];
	}
	return best && behindLine(scene.query, best, index);
}

interface Goal {
	label: string;
	value: number;
	displayLabel: boolean;
}

function goalsOf(filter: Fields): Goal[] {
	const lines = Array.isArray(filter.goalLines) ? (filter.goalLines as Fields[]) : [];
	return lines
		.filter((g) => typeof g.value === "number")
		.map((g) => ({ label: String(g.label ?? ""), value: g.value as number, displayLabel: g.displayLabel !== false }));
}

export function goalLines(goals: Goal[], paint: Paint, format: ValueFormat): Options {
	return {
		silent: true,
		symbol: "none",
		lineStyle: { color: paint.soft, type: "dashed", width: 1.5 },
		data: goals.map((g) => ({
			yAxis: g.value,
			label: {
				show: g.displayLabel,
				position: "insideEndTop",
				color: paint.soft,
				formatter: () => (g.label ? `${g.label}: ${formatValue(g.value, format)}` : formatValue(g.value, format)),
			},
		})),
	};
}

/** Lines of the tendency and of moving averages. */
function extras(scene: Scene, shown: Line[], paint: Paint): Options[] {
	const out: Options[] = [];
	const thin = (line: Line, kind: string, data: (number | null)[]): Options => ({
		id: `${line.place}:${kind}`,
		type: "line",
		silent: true,
		showSymbol: false,
		data,
		lineStyle: { color: colourAt(paint, line.colour), width: 1, type: kind === "trend" ? [2, 3] : [6, 3], opacity: 0.9 },
		itemStyle: { color: colourAt(paint, line.colour) },
	});
	if (scene.look.stacked) return out;
	const window = typeof scene.filter.movingAverageIntervals === "number" ? scene.filter.movingAverageIntervals : 10;
	for (const line of shown) {
		if (line.previous) continue;
		if (scene.filter.showTrendLines === true) out.push(thin(line, "trend", tendency(line.points)));
		if (scene.filter.showMovingAverage === true) out.push(thin(line, "mean", movingMean(line.points, window)));
	}
	return out;
}

/** The straight line that fits points best. */
export function tendency(points: readonly number[]): number[] {
	const n = points.length;
	if (n < 2) return [...points];
	const meanX = (n - 1) / 2;
	const meanY = points.reduce((sum, y) => sum + y, 0) / n;
	let above = 0;
	let below = 0;
	for (const [x, y] of points.entries()) {
		above += (x - meanX) * (y - meanY);
		below += (x - meanX) ** 2;
	}
	return points.map((_, x) => meanY + (above / below) * (x - meanX));
}

/** The mean of each point and those before it, null until there are enough. */
export function movingMean(points: readonly number[], window: number): (number | null)[] {
	return points.map((_, i) => {
		if (i + 1 < window) return null;
		const part = points.slice(i + 1 - window, i + 1);
		return part.reduce((sum, y) => sum + y, 0) / part.length;
	});
}

function sheet(scene: Scene): Sheet {
	const interval = intervalOf(scene.query);
	return {
		columns: [{ title: interval[0]?.toUpperCase() + interval.slice(1) }, ...scene.lines.map((l) => ({ title: l.name, number: true }))],
		rows: scene.days.map((day, i) => [
			{ text: longDay(day, interval) },
			...scene.lines.map((l) =>
				i < l.points.length ? { text: formatValue(l.points[i], scene.format), behind: cellBehind(scene.query, l, i) } : { text: "" },
			),
		]),
	};
}
