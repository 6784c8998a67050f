import type { EChartsCoreOption } from "echarts/core";
import type { QueryNode } from "../api/query";

/** The people or events behind a number of a chart. */
export interface Behind {
	/** What was clicked, such as "pageview on 3 May". */
	title: string;
	/**
	 * The query for them: an InsightActorsQuery, FunnelsActorsQuery, … (docs/insights.md, "Actors"), or an ActorsQuery that filters the actors of one: that of
	 * a column of a retention, whose drill-down is a whole row.
	 */
	source: QueryNode;
}

/** A number or a name in a table, with what is behind it. */
export interface Cell {
	text: string;
	behind?: () => Behind;
}

/** The numbers of a chart as a table. */
export interface Sheet {
	columns: { title: string; number?: boolean }[];
	rows: Cell[][];
}

/** The colours and the font of what is drawn, from the tokens. */
export interface Paint {
	text: string;
	soft: string;
	line: string;
	surface: string;
	raised: string;
	accent: string;
	good: string;
	bad: string;
	series: string[];
	font: string;
}

/** The colour of a series by its place. They repeat. */
export const colourAt = (paint: Paint, place: number): string => paint.series[place % paint.series.length] ?? paint.accent;

/** How much room there is, and what is not shown. */
export interface Room {
	small: boolean;
	width: number;
	/** Series that the user has hidden in the legend, by their place in it. */
	hidden: ReadonlySet<number>;
}

/** What was clicked in a plot: a shape, by the `id` of its series and its place in the data. */
export interface Pick {
	series: string;
	index: number;
	/** The datum itself, such as a link of a sankey. */
	data: unknown;
	/** "node" or "edge" in a sankey. */
	type: string;
}

/** Drawn by ECharts. */
export interface Plot {
	is: "plot";
	/** Height in pixels without one of the caller. */
	height: number;
	/** It scrolls sideways where there is less room. */
	minWidth?: number;
	option: (paint: Paint, room: Room) => EChartsCoreOption;
	/** What is behind a shape. */
	pick?: (picked: Pick) => Behind | undefined;
	/** What is behind the point next to a place in the plot: the place on the x axis, and the value on a y axis. */
	near?: (index: number, value: (axis: number) => number, room: Room) => Behind | undefined;
}

/** A large number. */
export interface Figure {
	name: string;
	text: string;
	/** The change since the previous period as a share, null when it cannot be told. */
	change?: number | null;
	/** Whether more is worse. */
	inverse?: boolean;
	previous?: string;
	/** Numbers over time, drawn as a small line. */
	points?: number[];
	colour?: number;
	behind?: () => Behind;
}

/** One bar of a step of a funnel. */
export interface StepBar {
	name: string;
	count: number;
	/** Shares of those who reached the first step, and the step before. */
	ofFirst: number;
	ofPrevious: number;
	/** The one of them that is drawn. */
	drawn: number;
	dropped: number;
	colour: number;
	/** Median seconds since the step before. */
	time: number | null;
	reached?: () => Behind;
	lost?: () => Behind;
}

/** What drawn shares are of: all who began, or those of the step or the interval before. */
export type Reference = "total" | "previous";

/** A step of a funnel, with a bar for each value of the breakdown. */
export interface Step {
	name: string;
	optional: boolean;
	bars: StepBar[];
}

/** A cell of a heat map: how dark it is from 0 to 1; null for none. */
export interface HeatCell extends Cell {
	heat: number | null;
	hint?: string;
	/** Whether the time that it counts goes on. */
	partial?: boolean;
}

export interface Heat {
	is: "heat";
	/** What the first columns say of each row. */
	heads: string[];
	columns: string[];
	groups: { name: string; rows: { heads: Cell[]; cells: HeatCell[] }[] }[];
}

/** A country on the map, by its ISO 3166 code of two letters. */
export interface Country {
	code: string;
	name: string;
	value: number;
	text: string;
	behind?: () => Behind;
}

export type Body =
	| Plot
	| Heat
	| { is: "figures"; figures: Figure[] }
	| { is: "steps"; steps: Step[]; sideways: boolean; reference: Reference }
	| { is: "map"; countries: Country[] }
	| { is: "sheet" }
	| { is: "rows"; columns: { title: string; detail: string; number: boolean }[]; rows: unknown[][] }
	| { is: "empty"; title: string; text?: string };

/** An entry of a legend. */
export interface LegendEntry {
	name: string;
	colour: number;
	/** Drawn dashed: a previous period. */
	dashed?: boolean;
	/** Hidden until the user shows it. */
	hidden?: boolean;
}

/** All that is shown of a query and its result. */
export interface Picture {
	/** What the chart shows, in a sentence. */
	label: string;
	body: Body;
	sheet: Sheet;
	legend?: LegendEntry[];
	/** What to know about the numbers. */
	note?: string;
}

/** A picture that says that there is nothing to draw. */
export function emptyPicture(title: string, text?: string): Picture {
	return { label: title, body: { is: "empty", title, text }, sheet: { columns: [], rows: [] } };
}
