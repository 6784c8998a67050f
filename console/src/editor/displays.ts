import { type Fields, fieldsOf, listOf } from "./json";
import { formulasOf } from "./formulas";

/** A way to draw a trend. */
export interface Display {
	value: string;
	label: string;
	under: "Over time" | "Total value";
}

const overTime = (value: string, label: string): Display => ({ value, label, under: "Over time" });
const total = (value: string, label: string): Display => ({ value, label, under: "Total value" });

/** The displays of trends, as people know them. */
export const displays: Display[] = [
	overTime("ActionsLineGraph", "Line"),
	overTime("ActionsAreaGraph", "Area"),
	overTime("ActionsBar", "Bars, stacked"),
	overTime("ActionsUnstackedBar", "Bars, side by side"),
	overTime("ActionsLineGraphCumulative", "Running total"),
	overTime("BoxPlot", "Box plot"),
	overTime("SlopeGraph", "Slope"),
	total("BoldNumber", "Number"),
	total("ActionsTable", "Table"),
	total("ActionsBarValue", "Bars"),
	total("ActionsPie", "Pie"),
	total("ActionsDonut", "Donut"),
	total("WorldMap", "World map"),
];

/** The displays that are offered, and the one that a query has where it is another. */
export function displaysFor(own: string): Display[] {
	return displays.some((d) => d.value === own) ? displays : [...displays, overTime(own, own)];
}

/** Displays that show one number for the whole range, so that there are no intervals. */
export const totals = [
	"BoldNumber",
	"ActionsPie",
	"ActionsBarValue",
	"ActionsTable",
	"WorldMap",
	"ActionsDonut",
	"ActionsProportionBar",
	"CalendarHeatmap",
	"TwoDimensionalHeatmap",
];

/** Displays without a legend and without numbers that could be shown or not. */
const bare = ["BoldNumber", "ActionsTable", "WorldMap", "CalendarHeatmap", "TwoDimensionalHeatmap", "Metric", "ScatterPlot"];
const bars = ["ActionsBarValue", "ActionsProportionBar"];
const pies = ["ActionsPie", "ActionsDonut"];

/** Whether the axis of a display can be logarithmic. */
export const isScaled = (display: string): boolean => ![...totals, "SlopeGraph", "Metric", "ScatterPlot"].includes(display);

/** Something that the chart of a trend can show or not. */
export interface Switch {
	/** The field of the trendsFilter. */
	name: string;
	label: string;
	/** Whether it is shown where the field is missing. */
	usual: boolean;
}

/** What the chart of a trend can show or not in its display. */
export function switchesOf(query: Fields, display: string): Switch[] {
	const out: Switch[] = [];
	if (![...bare, ...bars].includes(display)) out.push({ name: "showLegend", label: "Show a legend", usual: hasSeveral(query, display) });
	if (![...bare, "BoxPlot", "SlopeGraph"].includes(display)) {
		out.push({ name: "showValuesOnSeries", label: "Show values", usual: [...bars, ...pies].includes(display) });
	}
	if (["ActionsAreaGraph", "ActionsBar", "ActionsStackedBar"].includes(display)) {
		out.push({ name: "showPercentStackView", label: "Show shares of 100%", usual: false });
	}
	return out;
}

/** What a switch writes into its field: nothing if it is off anyway. A legend that was asked for stays when only one series is left. */
export const switched = (on: boolean, usual: boolean): boolean | undefined => (on || usual ? on : undefined);

/** Whether a trend has several lines, as far as its query tells: then the chart has a legend unless it says otherwise. */
function hasSeveral(query: Fields, display: string): boolean {
	const split = fieldsOf(query.breakdownFilter);
	const broken = listOf(split.breakdowns).length > 0 || (split.breakdown !== undefined && split.breakdown !== null);
	const lines = formulasOf(fieldsOf(query.trendsFilter)).length || listOf(query.series).length;
	const compared = fieldsOf(query.compareFilter).compare === true && ![...pies, "SlopeGraph", "BoxPlot"].includes(display);
	return broken || lines > 1 || compared;
}
