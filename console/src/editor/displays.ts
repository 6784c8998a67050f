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
