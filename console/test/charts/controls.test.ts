import { init } from "echarts";
import { describe, expect, test } from "vitest";
import { pictureOf } from "../../src/charts/picture";
import { displays, isScaled, switched, switchesOf } from "../../src/editor/displays";
import type { TrendItem } from "../../src/charts/options/lines";
import { optionOf, pictureWith, plotOf, sample, samples } from "./support";

/** A trend in a display, with some fields in its trendsFilter. */
function trendIn(display: string, fields: Record<string, unknown> = {}) {
	const { query, result } = sample(display === "BoxPlot" ? "trend_box" : "trend_line");
	if (display !== "BoxPlot") for (const item of result.results as TrendItem[]) item.aggregated_value = item.count;
	query.trendsFilter = { display, ...fields };
	return { query, picture: pictureOf(query, result) };
}

/** What ECharts draws of a trend. */
function drawn(display: string, fields?: Record<string, unknown>): string {
	const chart = init(null, null, { renderer: "svg", ssr: true, width: 800, height: 400 });
	chart.setOption(optionOf(trendIn(display, fields).picture));
	const svg = chart.renderToSVGString().replace(/zr\d+|cls-\d+/g, "");
	chart.dispose();
	return svg;
}

const all = [
	...displays.map((d) => d.value),
	"ActionsStackedBar",
	"ActionsProportionBar",
	"Metric",
	"ScatterPlot",
	"TwoDimensionalHeatmap",
];
const switches = all.flatMap((display) => switchesOf(trendIn(display).query, display).map((s) => ({ display, ...s })));

describe("each control of a trend changes its chart", () => {
	test.each(switches.filter((s) => s.name !== "showLegend"))("$display, $label", ({ display, name, usual }) => {
		expect(drawn(display, { [name]: usual })).toBe(drawn(display));
		expect(drawn(display, { [name]: !usual })).not.toBe(drawn(display));
	});
	test.each(switches.filter((s) => s.name === "showLegend"))("$display, $label", ({ display }) => {
		const { picture } = trendIn(display);
		expect(plotOf(picture)).toBeDefined();
		expect(picture.legend).toBeDefined();
	});
	test.each(all.filter(isScaled))("%s, Scale", (display) => {
		expect(drawn(display, { yAxisScaleType: "log10" })).not.toBe(drawn(display));
	});
	test("by saying yes, or no where its chart would have it anyway", () => {
		expect([switched(true, true), switched(true, false)]).toEqual([true, true]);
		expect([switched(false, true), switched(false, false)]).toEqual([false, undefined]);
	});
	test("and there is none where nothing would change", () => {
		const names = (display: string) => switches.filter((s) => s.display === display).map((s) => s.name);
		expect(names("ActionsBarValue")).toEqual(["showValuesOnSeries"]);
		expect(names("BoldNumber")).toEqual([]);
		for (const { display } of switches.filter((s) => s.name === "showPercentStackView")) expect(names(display)).toContain("showLegend");
	});
});

const plots = Object.keys(samples).filter(
	(name) => name.startsWith("trend_") && name !== "trend_box" && pictureWith(name).body.is === "plot",
);

test.each(plots)("the legend of %s is ticked if there is one", (name) => {
	const { query } = sample(name);
	const display = String((query.trendsFilter as Record<string, unknown> | undefined)?.display ?? "ActionsLineGraph");
	const shown = switchesOf(query, display).find((s) => s.name === "showLegend");
	if (shown) expect(shown.usual).toBe((pictureWith(name).legend?.length ?? 0) > 1);
});
