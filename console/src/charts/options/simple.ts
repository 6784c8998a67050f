import { type Behind, colourAt, type Cell, type Paint, type Picture, type Room } from "../model";
import { formatValue, listed, type ValueFormat } from "../values";
import { base, below, categories, grid, pointer, titled, tooltip, tooltipText, values } from "./axes";

type Options = Record<string, unknown>;

/** A line or a row of bars, one number for each place on the x axis; null for none. */
export interface Row {
	name: string;
	colour: number;
	points: (number | null)[];
	dashed?: boolean;
	hidden?: boolean;
	/** Drawn differently than the others. */
	shape?: "line" | "bar" | "area";
	/** Measured on an axis of its own at the right. */
	right?: boolean;
	behind?: (index: number) => Behind | undefined;
}

/** A plot of rows over places that have names. */
export interface Simple {
	/** What it shows, such as "Retention". */
	title: string;
	/** What the x axis is, the head of the table's first column. */
	axis: string;
	names: string[];
	/** The names in full, for tooltips and tables. */
	longNames?: string[];
	rows: Row[];
	shape: "line" | "bar" | "area";
	stacked?: boolean;
	/** Shares of each place in place of numbers. */
	percent?: boolean;
	format: ValueFormat;
	log?: boolean;
	max?: number;
	/** Whether the axis begins at the least number. */
	fromLeast?: boolean;
	/** Whether numbers are written on bars and points. */
	labelled?: boolean;
	/** The last place goes on: its bars are paler, its lines dashed. */
	open?: boolean;
	xTitle?: string;
	yTitle?: string;
	goals?: { label: string; value: number }[];
	/** Whether no bar touches another; a histogram's bars do. */
	gap?: boolean;
}

const plainFormat: ValueFormat = { format: "numeric", prefix: "", postfix: "", decimals: 2, minDecimals: 0 };

/** Plain numbers. */
export const plain = (more: Partial<ValueFormat> = {}): ValueFormat => ({ ...plainFormat, ...more });

/** Draws rows as lines, areas or bars. */
export function simplePicture(s: Simple): Picture {
	const long = s.longNames ?? s.names;
	const cell = (row: Row, i: number): Cell => {
		const value = row.points[i];
		if (value === null || value === undefined) return { text: "" };
		return { text: formatValue(value, s.format), behind: row.behind?.(i) && (() => row.behind?.(i) as Behind) };
	};
	return {
		label: `${s.title}: ${listed(s.rows.map((r) => r.name))}`,
		legend: s.rows.length > 1 ? s.rows.map((r) => ({ name: r.name, colour: r.colour, dashed: r.dashed, hidden: r.hidden })) : undefined,
		sheet: {
			columns: [{ title: s.axis }, ...s.rows.map((r) => ({ title: r.name, number: true }))],
			rows: long.map((name, i) => [{ text: name }, ...s.rows.map((r) => cell(r, i))]),
		},
		body: {
			is: "plot",
			height: 320,
			option: (paint, room) => option(s, paint, room),
			pick: ({ series, index }) => s.rows[Number.parseInt(series, 10)]?.behind?.(index),
			near: s.shape === "line" && !s.stacked ? (index, value, room) => nearest(s, index, value, room) : undefined,
		},
	};
}

function option(s: Simple, paint: Paint, room: Room): Options {
	const shown = s.rows.map((row, place) => ({ row, place })).filter(({ place }) => !room.hidden.has(place));
	const sums = s.names.map((_, i) => shown.reduce((sum, { row }) => sum + Math.abs(row.points[i] ?? 0), 0));
	const right = shown.some(({ row }) => row.right);
	const axisFormat: ValueFormat = s.percent ? plain({ format: "percentage" }) : s.format;
	const axis = (more: Options) =>
		values(paint, axisFormat, {
			type: s.log && !s.percent ? "log" : "value",
			max: s.percent ? 100 : s.max,
			scale: s.fromLeast === true,
			...more,
		});
	const series = shown.flatMap(({ row, place }) => seriesOf(s, row, place, sums, paint, room, shown.length));
	if (series[0] && s.goals && s.goals.length > 0) {
		series[0].markLine = {
			silent: true,
			symbol: "none",
			lineStyle: { color: paint.soft, type: "dashed" },
			data: s.goals.map((g) => ({ yAxis: g.value, label: { formatter: () => g.label, position: "insideEndTop", color: paint.soft } })),
		};
	}
	const bars = shown.some(({ row }) => (row.shape ?? s.shape) === "bar");
	return {
		...base(paint),
		grid: grid(room),
		tooltip: tooltip(paint, {
			trigger: "axis",
			axisPointer: pointer(paint, bars ? "shadow" : "line"),
			formatter: (given: { dataIndex: number; seriesId: string; marker: string }[]) => {
				const index = given[0]?.dataIndex ?? 0;
				const markers = new Map(given.map((g) => [Number.parseInt(g.seriesId, 10), g.marker]));
				const rows = shown
					.filter(({ row }) => row.points[index] !== null && row.points[index] !== undefined)
					.map(({ row, place }) => {
						const value = row.points[index] as number;
						return { name: row.name, value, text: formatValue(value, s.format), marker: markers.get(place) };
					});
				return tooltipText((s.longNames ?? s.names)[index] ?? "", rows);
			},
		}),
		xAxis: categories(paint, s.names, { boundaryGap: bars, ...titled(s.xTitle, 26) }),
		yAxis: right ? [axis(titled(s.yTitle, 44)), axis({ splitLine: { show: false } })] : axis(titled(s.yTitle, 44)),
		series,
	};
}

function seriesOf(s: Simple, row: Row, place: number, sums: number[], paint: Paint, room: Room, count: number): Options[] {
	const shape = row.shape ?? s.shape;
	const colour = colourAt(paint, row.colour);
	const data = row.points.map((value, i) => {
		if (value === null || (s.log && !s.percent && value <= 0)) return null;
		return s.percent ? (sums[i] ? (value / (sums[i] as number)) * 100 : 0) : value;
	});
	const last = data.length - 1;
	const common: Options = {
		id: String(place),
		name: row.name,
		yAxisIndex: row.right ? 1 : 0,
		stack: s.stacked && shape !== "line" ? (row.dashed ? "previous" : "all") : undefined,
		itemStyle: { color: colour, opacity: row.dashed ? 0.5 : 1 },
		label: {
			show: s.labelled === true && !room.small,
			position: shape === "bar" && s.stacked ? "inside" : "top",
			color: shape === "bar" && s.stacked ? paint.surface : paint.text,
			fontSize: 10,
			formatter: ({ dataIndex }: { dataIndex: number }) => (row.points[dataIndex] ? formatValue(row.points[dataIndex], s.format) : ""),
		},
		labelLayout: { hideOverlap: true },
		emphasis: { disabled: count > 12, focus: "series" },
		...below(count),
	};
	if (shape === "bar") {
		return [
			{
				...common,
				type: "bar",
				barMaxWidth: s.gap === false ? undefined : 48,
				barCategoryGap: s.gap === false ? "4%" : "25%",
				data: s.open ? data.map((value, i) => (i === last ? { value, itemStyle: { opacity: 0.55 } } : value)) : data,
			},
		];
	}
	const line: Options = {
		...common,
		type: "line",
		showSymbol: data.length === 1 || (data.length <= 40 && count <= 8 && !room.small),
		symbolSize: 5,
		sampling: data.length > 400 && !s.stacked ? "lttb" : undefined,
		lineStyle: { color: colour, width: 2, type: row.dashed ? [4, 4] : "solid", opacity: row.dashed ? 0.6 : 1 },
		areaStyle: shape === "area" ? { color: colour, opacity: 0.28 } : undefined,
		data,
	};
	if (!s.open || shape === "area" || data.length < 2 || row.dashed) return [line];
	return [
		{ ...line, data: data.map((value, i) => (i === last ? null : value)) },
		{
			...line,
			id: `${place}:open`,
			label: { show: false },
			lineStyle: { color: colour, width: 2, type: [3, 4] },
			data: data.map((value, i) => (i >= last - 1 ? value : null)),
		},
	];
}

function nearest(s: Simple, index: number, value: (axis: number) => number, room: Room): Behind | undefined {
	let best: Row | undefined;
	let distance = Number.POSITIVE_INFINITY;
	for (const [place, row] of s.rows.entries()) {
		const point = row.points[index];
		if (room.hidden.has(place) || point === null || point === undefined || row.right) continue;
		const far = Math.abs(point - value(0));
		if (far < distance) [best, distance] = [row, far];
	}
	return best?.behind?.(index);
}
