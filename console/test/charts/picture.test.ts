import { init } from "echarts";
import { describe, expect, test } from "vitest";
import { emptyPicture } from "../../src/charts/model";
import { readLines, type TrendItem } from "../../src/charts/options/lines";
import { cohortsIn } from "../../src/charts/options/retention";
import { pictureOf } from "../../src/charts/picture";
import { cells, optionOf, paint, pictureWith, plotOf, room, sample, samples } from "./support";

describe("every sample", () => {
	test.each(Object.keys(samples))("%s has a label, and a plot that ECharts draws", (name) => {
		const { query, result } = sample(name);
		const picture = pictureOf({ kind: "InsightVizNode", source: query }, result);
		expect(picture.label).not.toMatch(/undefined|NaN|\$\$/);
		for (const row of picture.sheet.rows) expect(row).toHaveLength(picture.sheet.columns.length);
		if (picture.body.is !== "plot") return;
		for (const small of [true, false]) {
			const chart = init(null, null, { renderer: "svg", ssr: true, width: 600, height: 300 });
			chart.setOption(picture.body.option(paint, { ...room, small }));
			expect(chart.renderToSVGString()).toMatch(/<path|<rect|<text/);
			chart.dispose();
		}
	});
});

describe("trends", () => {
	test("lines are named and coloured; a previous one has the colour of its current one", () => {
		expect(pictureWith("trend_line").legend).toEqual([
			{ name: "commit authored", colour: 0, dashed: false, hidden: false },
			{ name: "Mergers", colour: 1, dashed: false, hidden: false },
			{ name: "commit authored (previous)", colour: 0, dashed: true, hidden: false },
			{ name: "Mergers (previous)", colour: 1, dashed: true, hidden: false },
		]);
		expect(pictureWith("trend_breakdowns").legend?.map((l) => l.name)).toEqual([
			"commit authored · false · None",
			"commit authored · true · None",
			"Mergers · false · main",
		]);
	});

	test("two series of one event say what they count", () => {
		const { query, result } = sample("trend_line");
		for (const item of result.results as { action: Record<string, unknown> }[])
			Object.assign(item.action, { name: "paid", custom_name: null });
		expect(pictureOf(query, result).legend?.map((l) => l.name)).toEqual([
			"paid (count)",
			"paid (unique people)",
			"paid (count) (previous)",
			"paid (unique people) (previous)",
		]);
	});

	test("customizations colour and hide series, by what they are or by their place", () => {
		const byValue = pictureWith("trend_line", "trendsFilter", {
			resultCustomizations: { '{"series":1,"compare_label":"current"}': { assignmentBy: "value", color: "preset-5", hidden: true } },
		});
		expect(byValue.legend?.[1]).toEqual({ name: "Mergers", colour: 4, dashed: false, hidden: true });
		const byBreakdown = pictureWith("trend_breakdown", "trendsFilter", {
			resultCustomizations: { '{"series":0,"breakdown_value":["tsdb"]}': { color: "preset-9" } },
		});
		expect(byBreakdown.legend?.[2]).toMatchObject({ name: "tsdb", colour: 8 });
		const byPlace = pictureWith("trend_breakdown", "trendsFilter", {
			resultCustomizationBy: "position",
			resultCustomizations: { 3: { color: "preset-2" } },
		});
		expect(byPlace.legend?.[3]?.colour).toBe(1);
	});

	test("the table has every number as the insight writes it", () => {
		const { result } = sample("trend_line");
		const items = result.results as { data: number[] }[];
		const table = cells(pictureWith("trend_line", "trendsFilter", { aggregationAxisPrefix: "~", decimalPlaces: 0 }));
		expect(table).toHaveLength(14);
		expect(table.map((row) => row[1])).toEqual(items[0]?.data.map((n) => `~${n}`));
		expect(table.map((row) => row[4])).toEqual(items[3]?.data.map((n) => `~${n}`));
	});

	test("the last bucket is dashed while it goes on, but for previous periods", () => {
		const { query, result } = sample("trend_line");
		const ids = (r = result) => optionOf(pictureOf(query, r)).series.map((s: { id: string }) => s.id);
		expect(ids()).toEqual(["0", "1", "2", "3"]);
		const open = { ...result, last_refresh: "2026-08-14T23:59:00Z" };
		expect(ids(open)).toEqual(["0", "0:open", "1", "1:open", "2", "3"]);
		const series = optionOf(pictureOf(query, open)).series;
		expect(series[0].data.at(-1)).toBeNull();
		expect(series[1].data.slice(-3)).toEqual([null, 24, 9]);
	});

	test("shares of a stack add up to 100, without hidden series", () => {
		const picture = pictureWith("trend_week", "trendsFilter", { showPercentStackView: true });
		const of = (hidden: number[]) => optionOf(picture, { hidden: new Set(hidden) }).series.map((s: { data: number[] }) => s.data[1]);
		expect(of([]).reduce((a: number, b: number) => a + b)).toBeCloseTo(100);
		expect(of([1])).toEqual([100]);
	});

	test("a log scale leaves out what it cannot show", () => {
		const option = optionOf(pictureWith("trend_breakdown", "trendsFilter", { yAxisScaleType: "log10" }));
		expect(option.yAxis.type).toBe("log");
		expect(option.series.flatMap((s: { data: unknown[] }) => s.data)).not.toContain(0);
	});

	test("displays have their shapes", () => {
		const shape = (display: string) => {
			const [first] = optionOf(pictureWith("trend_line", "trendsFilter", { display })).series;
			return [first.type, first.stack !== undefined, first.areaStyle !== undefined];
		};
		expect(shape("ActionsLineGraph")).toEqual(["line", false, false]);
		expect(shape("ActionsAreaGraph")).toEqual(["line", true, true]);
		expect(shape("ActionsBar")).toEqual(["bar", true, false]);
		expect(shape("ActionsStackedBar")).toEqual(["bar", true, false]);
		expect(shape("ActionsUnstackedBar")).toEqual(["bar", false, false]);
	});

	test("weekends can be left out", () => {
		expect(cells(pictureWith("trend_line", "trendsFilter", { hideWeekends: true })).map((row) => row[0])).toHaveLength(10);
	});

	test("without weekends, days are still compared with those as far before", () => {
		const { query, result } = sample("trend_metric"); // its current period begins on a Saturday
		const items = result.results as TrendItem[];
		const previous = items[1] as TrendItem;
		previous.days = previous.days.map((day) => day.replace(/\d\d$/, (date) => String(Number(date) - 2)));
		const all = items.map((item) => item.data ?? []);
		query.trendsFilter = { ...(query.trendsFilter as object), hideWeekends: true };
		const kept = [2, 3, 4, 5, 6, 9, 10, 11, 12, 13];
		expect(readLines(query, result).map((line) => line.points)).toEqual(all.map((points) => kept.map((i) => points[i])));
		expect(readLines(query, result)[1]?.days.slice(0, 6)).toEqual(kept.slice(0, 6).map((i) => previous.days[i]));
	});

	test("goals, tendencies and moving averages are drawn beside", () => {
		const fields = { goalLines: [{ label: "Goal", value: 90 }], showTrendLines: true, showMovingAverage: true, movingAverageIntervals: 3 };
		const option = optionOf(pictureWith("trend_cumulative", "trendsFilter", fields));
		expect(option.series.map((s: { id: string }) => s.id)).toEqual(["0", "0:trend", "0:mean"]);
		expect(option.series[0].markLine.data[0].yAxis).toBe(90);
		expect(option.yAxis.max({ max: 50 })).toBe(90);
		expect(option.yAxis.max({ max: 500 })).toBeNull();
		expect(option.series[2].data.slice(0, 3)).toEqual([null, null, (7 + 18 + 26) / 3]);
	});

	test("totals stand beside the previous ones", () => {
		expect(cells(pictureWith("trend_table"))).toEqual([
			["commit authored", "false", "147", "130", "+13.1%"],
			["commit authored", "true", "58", "16", "+262.5%"],
			["Mergers", "false", "17", "19", "−10.5%"],
		]);
		const number = pictureWith("trend_number").body;
		expect(number.is === "figures" && number.figures[0]).toMatchObject({ text: "205", previous: "146" });
	});

	test("a map has countries by their names", () => {
		const { body } = pictureWith("trend_map");
		expect(body.is === "map" && body.countries.map((c) => [c.code, c.name, c.text]).slice(0, 2)).toEqual([
			["US", "United States", "4,200"],
			["DE", "Germany", "1,300"],
		]);
		expect(cells(pictureWith("trend_map")).at(-1)).toEqual(["None", "205"]);
	});

	test("a map of several series draws the first, and says so", () => {
		const { query, result } = sample("trend_map");
		const items = result.results as TrendItem[];
		const second = { ...(items[0] as TrendItem), aggregated_value: 7, action: { order: 1, name: "paid" } };
		const picture = pictureOf(query, { ...result, results: [...items, second] });
		const name = items[0]?.action?.name ?? "";
		expect(picture.note).toBe(`The map shows ${name} only. The table has all series.`);
		expect(picture.body).toMatchObject({ is: "map", countries: { length: items.length, 0: { code: "US", text: "4,200" } } });
		expect([cells(picture)[0], cells(picture).at(-1)]).toEqual([
			[name, "United States", "4,200"],
			["paid", "United States", "7"],
		]);
		expect(pictureOf(query, result).note).toBeUndefined();
	});

	test("a map knows series of the same name apart", () => {
		const { query, result } = sample("trend_map");
		const items = result.results as TrendItem[];
		const second = { ...(items[0] as TrendItem), aggregated_value: 7, action: { ...items[0]?.action, order: 1 } };
		const picture = pictureOf(query, { ...result, results: [...items, second] });
		expect(picture.note).toBeDefined();
		expect(picture.body).toMatchObject({ is: "map", countries: { length: items.length, 0: { code: "US", text: "4,200" } } });
		expect(cells(picture)).toHaveLength(items.length + 1);
	});

	test("a slope and boxes say if the last bucket goes on", () => {
		const slope = sample("trend_slope");
		const line = () => {
			const picture = pictureOf(slope.query, slope.result);
			return [picture.note, picture.sheet.columns[2]?.title, optionOf(picture).series[0].lineStyle.type];
		};
		expect(line()).toEqual([undefined, "14 Aug", "solid"]);
		for (const item of slope.result.results as TrendItem[]) item.incomplete_end = true;
		expect(line()).toEqual(["The last day has not ended yet.", "14 Aug (so far)", [3, 4]]);

		const { query, result } = sample("trend_box");
		const box = (computed: string) => {
			const picture = pictureOf(query, { ...result, last_refresh: computed });
			const option = optionOf(picture);
			const tip: string = option.tooltip.formatter({ seriesId: "0", dataIndex: 13 });
			return [picture.note, option.series[0].data.at(-1).itemStyle?.borderType, tip.includes("(so far)"), cells(picture)[13]?.[1]];
		};
		expect(box("2026-08-15T00:00:00Z")).toEqual([undefined, undefined, false, "Fri, 14 Aug 2026"]);
		expect(box("2026-08-14T12:00:00Z")).toEqual(["The last day has not ended yet.", "dashed", true, "Fri, 14 Aug 2026 (so far)"]);
	});

	test("a box plot without a property says why there is none", () => {
		expect(pictureWith("trend_box_wrong").body).toMatchObject({ is: "empty", text: "A numeric property must be selected for box plot." });
	});

	test("a tooltip names the largest of many series, and none of their braces", () => {
		const { query, result } = sample("trend_line");
		const [first] = result.results as { data: number[] }[];
		const many = Array.from({ length: 50 }, (_, i) => ({
			...first,
			compare: undefined,
			compare_label: undefined,
			data: first?.data.map((n) => n + i),
			breakdown_value: `{b|${i}}`,
		}));
		const option = optionOf(pictureOf(query, { ...result, results: many }));
		const tip = option.tooltip.formatter([{ dataIndex: 0, seriesId: "0", marker: "" }]).split("\n");
		expect(tip).toHaveLength(14);
		expect(tip[1]).toBe("(b|49)  56");
		expect(tip[13]).toBe("and 38 more");
		expect(option.tooltip.renderMode).toBe("richText");
	});
});

describe("funnels", () => {
	test("steps have those who reached them, and who did not", () => {
		expect(cells(pictureWith("funnel"))).toEqual([
			["1. commit authored", "738", "100%", "", "", "", ""],
			["2. pull request merged", "123", "16.7%", "16.7%", "615", "2d 19h", "6d 9h"],
			["3. release tagged", "8", "1.1%", "6.5%", "115", "5d 2h", "5d 15h"],
		]);
	});

	test("nobody drops off at an optional step", () => {
		expect(cells(pictureWith("funnel_optional")).map((row) => row[4])).toEqual(["", "617", "730"]);
	});

	test("shares can be of the step before", () => {
		const drawn = (fields: object) => {
			const { body } = pictureWith("funnel", "funnelsFilter", { ...fields });
			return body.is === "steps" && [body.reference, ...body.steps.map((step) => step.bars[0]?.drawn.toFixed(3))];
		};
		expect(drawn({})).toEqual(["total", "1.000", "0.167", "0.011"]);
		expect(drawn({ funnelStepReference: "previous" })).toEqual(["previous", "1.000", "0.167", "0.065"]);
	});

	test("bars lie down from top to bottom", () => {
		expect(pictureWith("funnel", "funnelsFilter", { layout: "horizontal" }).body).toMatchObject({ is: "steps", sideways: true });
	});

	test("times are ranges", () => {
		const picture = pictureWith("funnel_time");
		expect(cells(picture)[1]).toEqual(["2d 18h to 5d 13h", "16"]);
		expect(picture.note).toBe("Average 3d 7h, median 1d 20h");
	});
});

describe("retention", () => {
	test("shares are of the row's people; what is ahead is empty", () => {
		const { body } = pictureWith("retention");
		if (body.is !== "heat") throw new Error("no heat map");
		const rows = body.groups[0]?.rows.map((row) => [...row.heads, ...row.cells].map((c) => c.text));
		expect(rows?.[0]?.slice(0, 4)).toEqual(["Average", "89", "100%", "30.9%"]);
		expect(rows?.[1]).toEqual(["Mar 2026", "91", "100%", "36.3%", "25.3%", "22%", "24.2%", "15.4%"]);
		expect(rows?.[6]).toEqual(["Aug 2026", "82", "100%", "", "", "", "", ""]);
	});

	test("the mean weighs rows by their people if it should", () => {
		const mean = (mode: string) => {
			const { body } = pictureWith("retention", "retentionFilter", { meanRetentionCalculation: mode });
			return body.is === "heat" ? body.groups[0]?.rows[0]?.cells[2]?.text : "";
		};
		expect([mean("simple"), mean("weighted")]).toEqual(["23%", "22.9%"]);
		const { body } = pictureWith("retention", "retentionFilter", { meanRetentionCalculation: "none" });
		expect(body.is === "heat" && body.groups[0]?.rows).toHaveLength(6);
	});

	test("months end on the project's clock", () => {
		const { query, result } = sample("retention");
		const months = ["2026-01-01T00:00:00+01:00", "2026-02-01T00:00:00+01:00", "2026-03-01T00:00:00+01:00"];
		result.results = months.map((date, row) => ({
			date,
			label: `Month ${row}`,
			values: months.map((_, i) => ({ count: row + i < 3 ? 10 : 0, label: `Month ${i}` })),
		}));
		const stateOf = (computed: string, end: string) => {
			const { body } = pictureOf(query, { ...result, last_refresh: computed, resolved_date_range: { date_to: end } });
			if (body.is !== "heat") throw new Error("no heat map");
			return body.groups[0]?.rows.slice(-3).map((row) => row.cells.map((c) => (c.text === "" ? "future" : c.partial ? "open" : "done")));
		};
		// March began in Berlin an hour before it did in UTC.
		expect(stateOf("2026-02-28T23:30:00Z", "2026-03-01T23:59:59.999999+01:00")).toEqual([
			["done", "done", "open"],
			["done", "open", "future"],
			["open", "future", "future"],
		]);
		// The clock was put forward in March, and the range ends with the month.
		expect(stateOf("2026-05-01T12:00:00Z", "2026-03-31T23:59:59.999999+02:00")).toEqual([
			["done", "done", "done"],
			["done", "done", "future"],
			["done", "future", "future"],
		]);
	});

	test("shares can be of the column before", () => {
		const { body } = pictureWith("retention", "retentionFilter", { retentionReference: "previous" });
		expect(body.is === "heat" && body.groups[0]?.rows[1]?.cells[2]?.text).toBe("69.7%");
	});

	test("tooltips say what a share is of, and who was counted", () => {
		const hints = (fields: Record<string, unknown>, more = {}) => {
			const { query, result } = sample("retention");
			query.retentionFilter = { ...(query.retentionFilter as object), ...fields };
			const { body } = pictureOf({ ...query, ...more }, result);
			if (body.is !== "heat") throw new Error("no heat map");
			return [body.heads[1], ...(body.groups[0]?.rows[1]?.cells.slice(0, 3).map((c) => c.hint) ?? [])];
		};
		expect(hints({})).toEqual(["People", "91 of 91", "33 of 91", "23 of 91"]);
		expect(hints({ retentionReference: "previous" })).toEqual(["People", "91 of 91", "33 of 91", "23 of 33"]);
		expect(hints({}, { aggregation_group_type_index: 0 })[0]).toBe("Groups");
	});

	test("sums say how many people or groups they are from", () => {
		const { query, result } = sample("retention");
		for (const item of result.results as { values: Record<string, number>[] }[]) for (const v of item.values) v.aggregation_value = 2;
		const hint = (more: object) => {
			const { body } = pictureOf({ ...query, ...more }, result);
			return body.is === "heat" && body.groups[0]?.rows[0]?.cells[0]?.hint;
		};
		expect([hint({}), hint({ aggregation_group_type_index: 1 })]).toEqual(["2 from 91 people", "2 from 91 groups"]);
	});

	test("cohorts have their names, and everybody is one of them", () => {
		const { query, result } = sample("retention");
		const items = result.results as object[];
		result.results = ["7", "0"].flatMap((breakdown_value) => items.map((item) => ({ ...item, breakdown_value })));
		for (const split of [
			{ breakdown_type: "cohort", breakdown: [7, "all"] },
			{
				breakdowns: [
					{ type: "cohort", property: 7 },
					{ type: "cohort", property: "all" },
				],
			},
		]) {
			const by = { ...query, breakdownFilter: split };
			expect(cohortsIn(by, result)).toEqual(["7", "0"]);
			const { body, sheet } = pictureOf(by, result, new Map([["7", "Regulars"]]));
			expect(body.is === "heat" && body.groups.map((g) => g.name)).toEqual(["Regulars", "All people"]);
			expect(sheet.rows[0]?.[1]?.text).toBe("Regulars");
			expect(sheet.rows[0]?.[2]?.behind?.().title).toBe("Mar 2026 · Regulars, Month 0");
			expect(pictureOf(by, result).sheet.rows[0]?.[1]?.text).toBe("Cohort 7");
		}
		const byProperty = { ...query, breakdownFilter: { breakdown_type: "event", breakdown: "size" } };
		expect(cohortsIn(byProperty, result)).toEqual([]);
		expect(pictureOf(byProperty, result).sheet.rows[0]?.[1]?.text).toBe("7");
	});

	test("values have a heat map each, and lines a line for each row", () => {
		const { body } = pictureWith("retention_breakdown");
		expect(body.is === "heat" && body.groups.map((g) => g.name)).toEqual(["false", "true"]);
		const lines = optionOf(pictureWith("retention", "retentionFilter", { display: "ActionsLineGraph" })).series;
		expect(lines).toHaveLength(6);
		expect(lines[5].data).toEqual([100, null, null, null, null, null]);
	});
});

describe("others", () => {
	test("nodes of paths stand in the column of their step", () => {
		const [{ data, links }] = optionOf(pictureWith("paths")).series;
		expect(data.find((n: { name: string }) => n.name === "3_commit authored").depth).toBe(2);
		expect(new Set(data.map((n: { name: string }) => n.name)).size).toBe(data.length);
		expect(links).toHaveLength((sample("paths").result.results as unknown[]).length);
	});

	test("statuses that are not toggled are hidden, and the dormant below zero", () => {
		const picture = pictureWith("lifecycle", "lifecycleFilter", { toggledLifecycles: ["new", "dormant"] });
		expect(picture.legend?.map((e) => [e.name, e.hidden])).toEqual([
			["New", false],
			["Returning", true],
			["Resurrecting", true],
			["Dormant", false],
		]);
		const dormant = optionOf(picture).series[3];
		expect(Math.max(...dormant.data)).toBeLessThanOrEqual(0);
	});

	test("figures of visits have their units, and the worse of them is marked", () => {
		const { body } = pictureWith("web_overview");
		expect(body.is === "figures" && body.figures.map((f) => [f.name, f.text, f.change, f.inverse])).toEqual([
			["Visitors", "1,234", 0.23, false],
			["Views", "5,678", -0.05, false],
			["Sessions", "1,500", 0, false],
			["Session duration", "3m 2s", 0.22, false],
			["Bounce rate", "41.2%", 0.08, true],
		]);
		expect(cells(pictureWith("web_stats"))[0]).toEqual(["/pricing", "120", "100", "300", "250", "41%", "50%"]);
	});

	test("hours of the week have 7 rows of 24 columns", () => {
		const { body } = pictureWith("calendar");
		expect(body.is === "heat" && [body.columns.length, body.groups[0]?.rows.length]).toEqual([24, 8]);
		const total = cells(pictureWith("calendar")).reduce((sum, row) => sum + Number(row.at(-1)), 0);
		expect(total).toBe((sample("calendar").result.results as { allAggregations: number }).allAggregations);
	});

	test("results without rows say so, and unknown kinds are tables", () => {
		for (const kind of ["TrendsQuery", "FunnelsQuery", "RetentionQuery", "PathsQuery", "StickinessQuery", "LifecycleQuery"]) {
			expect(pictureOf({ kind }, { results: [] }).body.is).toBe("empty");
		}
		expect(pictureOf({ kind: "EventsQuery" }, { results: [["a", 1]], columns: ["x", "y"] }).body.is).toBe("rows");
		expect(pictureOf({ kind: "Strange" }, { results: { a: 1 } })).toEqual(emptyPicture("This result cannot be drawn"));
	});
});

test("50 series of a year have no symbols and no states to compute", () => {
	const { query, result } = sample("trend_line");
	const days = Array.from({ length: 365 }, (_, i) => new Date(Date.UTC(2025, 0, 1 + i)).toISOString().slice(0, 10));
	const results = Array.from({ length: 50 }, (_, k) => ({
		action: { order: 0, name: "a" },
		label: "a",
		count: 1,
		breakdown_value: `v${k}`,
		days,
		data: days.map((_, i) => i * k),
	}));
	const picture = pictureOf(query, { ...result, results });
	for (const series of optionOf(picture).series) expect([series.showSymbol, series.emphasis.disabled]).toEqual([false, true]);
	expect(plotOf(picture).near).toBeDefined();
});
