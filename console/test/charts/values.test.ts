import { describe, expect, test } from "vitest";
import { nodeName } from "../../src/charts/options/paths";
import { chosenColumns, numberIn, readRows, resultPicture, type ResultSettings } from "../../src/charts/options/result";
import { movingMean, tendency } from "../../src/charts/options/time";
import { goesOn } from "../../src/charts/progress";
import { unwrap } from "../../src/charts/unwrap";
import { breakdownName, formatAxis, formatValue, longDay, shortDay, shorten, valueFormat } from "../../src/charts/values";
import { shapes } from "../../src/charts/world";
import { sparkPath } from "../../src/ui/sparkline";
import { cells, optionOf, sample } from "./support";

describe("numbers", () => {
	test.each([
		[1234.567, {}, "1,234.57"],
		[1234.567, { decimalPlaces: 0 }, "1,235"],
		[5, { minDecimalPlaces: 2 }, "5.00"],
		[5, { decimalPlaces: 1, minDecimalPlaces: 3 }, "5.000"],
		[90, { aggregationAxisFormat: "duration" }, "1m 30s"],
		[90_000, { aggregationAxisFormat: "duration_ms" }, "1m 30s"],
		[2e9, { aggregationAxisFormat: "duration_ns" }, "2 s"],
		[-90, { aggregationAxisFormat: "duration" }, "-1m 30s"],
		[12.345, { aggregationAxisFormat: "percentage" }, "12.35%"],
		[0.12345, { aggregationAxisFormat: "percentage_scaled", decimalPlaces: 1 }, "12.3%"],
		[12345, { aggregationAxisFormat: "short" }, "12.3K"],
		[12.5, { aggregationAxisFormat: "currency" }, "$12.50"],
		[7, { aggregationAxisPrefix: "€", aggregationAxisPostfix: " a day" }, "€7 a day"],
		[7.5, { decimalPlaces: 500 }, "7.5"],
	])("%f with %o is %s", (value, filter, want) => expect(formatValue(value, valueFormat(filter))).toBe(want));

	test("an axis is short of room, and nothing is a dash", () => {
		expect(formatAxis(20000, valueFormat({}))).toBe("20K");
		expect(formatValue(null, valueFormat({}))).toBe("–");
	});

	test("texts are cut in their middle", () => {
		expect(shorten("abcdefghij", 5)).toBe("ab…ij");
		expect(nodeName("2_https://example.com/docs/install?x=1", 40)).toBe("/docs/install?x=1");
		expect(nodeName("12_3_things", 40)).toBe("3_things");
	});
});

describe("values of a breakdown", () => {
	test.each([
		["Chrome", "Chrome"],
		["$$_posthog_breakdown_null_$$", "None"],
		["", "None"],
		["$$_posthog_breakdown_other_$$", "Other"],
		[["DE", ""], "DE · None"],
		["[10,20]", "10–20"],
		["[-0.5,1000000]", "-0.5–1,000,000"],
		['["",""]', '["",""]'],
		[false, "false"],
	])("%o is %s", (value, want) => expect(breakdownName(value)).toBe(want));
});

describe("buckets", () => {
	test.each([
		["2026-08-01", "day", "1 Aug", "Sat, 1 Aug 2026"],
		["2026-08-02", "week", "2 Aug", "week of 2 Aug 2026"],
		["2026-08-01", "month", "Aug 2026", "Aug 2026"],
		["2026-07-01", "quarter", "Q3 2026", "Q3 2026"],
		["2026-01-01", "year", "2026", "2026"],
		["2026-08-01 14:00:00", "hour", "1 Aug 14:00", "1 Aug 2026, 14:00"],
		["2026-08-01 14:00:07", "second", "14:00:07", "1 Aug 2026, 14:00:07"],
		["odd", "day", "odd", "odd"],
	])("%s by %s", (day, interval, short, long) => expect([shortDay(day, interval), longDay(day, interval)]).toEqual([short, long]));

	test.each([
		["2026-08-14", "day", "2026-08-14T23:59:59Z", "2026-08-14T23:59:59Z", true],
		["2026-08-14", "day", "2026-08-15T00:00:00Z", "2026-08-14T23:59:59Z", false],
		["2026-08-14", "day", "2026-08-14T23:30:00Z", "2026-08-14T23:59:59+02:00", false],
		["2026-08-14", "day", "2026-08-15T06:30:00Z", "2026-08-14T23:59:59-07:00", true],
		["2026-08-01", "month", "2026-08-31T12:00:00Z", "2026-08-31T23:59:59Z", true],
		["2026-07-01", "quarter", "2026-10-01T00:00:00Z", "2026-09-30T23:59:59Z", false],
		["2026-08-14 10:00:00", "hour", "2026-08-14T10:30:00Z", "2026-08-14T10:59:59Z", true],
	])("%s by %s at %s with dates up to %s goes on: %s", (day, interval, last_refresh, date_to, want) => {
		const result = { results: [], last_refresh, resolved_date_range: { date_from: "", date_to } };
		expect(goesOn({ kind: "TrendsQuery", interval }, result, day)).toBe(want);
	});
});

test("nodes around a query are looked through", () => {
	const query = { kind: "HogQLQuery", query: "SELECT 1" };
	const settings = { kind: "DataVisualizationNode", display: "ActionsBar", source: query };
	expect(unwrap({ kind: "InsightVizNode", source: settings })).toEqual({ query, settings });
	expect(unwrap({ kind: "InsightVizNode" }).query).toEqual({ kind: "InsightVizNode" });
});

test("tendencies and means", () => {
	expect(tendency([1, 2, 3])).toEqual([1, 2, 3]);
	expect(tendency([5])).toEqual([5]);
	expect(movingMean([1, 2, 3, 4], 2)).toEqual([null, 1.5, 2.5, 3.5]);
});

describe("rows", () => {
	const { result } = sample("sql");

	test("a time is drawn against all numbers unless settings say otherwise", () => {
		expect(chosenColumns(readRows(result), {})).toEqual({ x: "month", y: [{ column: "n" }, { column: "mean" }], series: "event" });
		const settings = { chartSettings: { xAxis: { column: "gone" }, yAxis: [{ column: "n" }], seriesBreakdownColumn: "event" } };
		expect(chosenColumns(readRows(result), settings)).toEqual({ x: "month", y: [{ column: "n" }], series: "event" });
	});

	describe("rows of the same place", () => {
		const columns = ["day", "event", "n"];
		const types = ["Date", "String", "UInt64"];
		const rows = [
			["2026-03-01", "a", 1],
			["2026-03-01", "b", 2],
			["2026-03-02", "a", 3],
		];
		const data = { results: rows, columns, types };
		const noteOf = (chartSettings: ResultSettings["chartSettings"], results: unknown[][] = rows) =>
			resultPicture({ ...data, results }, { display: "ActionsBar", chartSettings }).note;

		test("are of different series, if nothing else was chosen", () => {
			expect(cells(resultPicture(data, { display: "ActionsBar" }))).toEqual([
				["2026-03-01", "1", "2"],
				["2026-03-02", "3", ""],
			]);
			expect(noteOf(undefined)).toBeUndefined();
			for (const chart of [{ seriesBreakdownColumn: null }, { yAxis: [{ column: "n" }] }]) {
				expect(chosenColumns(readRows(data), { chartSettings: chart }).series).toBeNull();
			}
			expect(chosenColumns(readRows({ ...data, results: rows.slice(1) }), {}).series).toBeNull();
		});
		test("are not left out silently", () => {
			expect(noteOf({ seriesBreakdownColumn: null })).toBe("Of rows with the same day, only the last is drawn: 1 row left out.");
			expect(noteOf(undefined, [...rows, ...rows])).toBe("Of rows with the same day and event, only the last is drawn: 3 rows left out.");
		});
		test("are told apart by their offsets when the clocks change", () => {
			const hours = ["01:00:00+01:00", "00:00:00+01:00", "02:00:00+00:00", "01:00:00+00:00"];
			const picture = resultPicture(
				{
					results: hours.map((hour, i) => [`2026-10-25T${hour}`, i]),
					columns: ["hour", "n"],
					types: ["DateTime('Europe/London')", "UInt64"],
				},
				{ display: "ActionsBar" },
			);
			expect(cells(picture)).toEqual([
				["2026-10-25", "1"],
				["2026-10-25 01:00+01:00", "0"],
				["2026-10-25 01:00+00:00", "3"],
				["2026-10-25 02:00", "2"],
			]);
		});
	});

	test("a column splits into series", () => {
		const picture = resultPicture(result, {
			display: "ActionsBar",
			chartSettings: { yAxis: [{ column: "n" }], seriesBreakdownColumn: "event" },
		});
		expect(picture.sheet.columns.map((c) => c.title)).toEqual([
			"month",
			"commit authored",
			"commit landed",
			"pull request merged",
			"release tagged",
		]);
		expect(cells(picture)[0]).toEqual(["2026-03-01", "487", "10", "105", "1"]);
	});

	test("stacks, shares, scales and the right axis are those of the settings", () => {
		const stacked = resultPicture(result, {
			display: "ActionsStackedBar",
			chartSettings: { yAxis: [{ column: "n" }], seriesBreakdownColumn: "event", stackBars100: true },
		});
		expect(optionOf(stacked).yAxis.max).toBe(100);
		const two = resultPicture(result, {
			display: "ActionsLineGraph",
			chartSettings: {
				yAxis: [{ column: "n" }, { column: "mean", settings: { display: { label: "Mean", yAxisPosition: "right", displayType: "bar" } } }],
				leftYAxisSettings: { scale: "logarithmic" },
			},
		});
		const option = optionOf(two);
		expect(option.series.map((s: { name: string; type: string; yAxisIndex: number }) => [s.name, s.type, s.yAxisIndex])).toEqual([
			["n", "line", 0],
			["Mean", "bar", 1],
		]);
		expect(option.yAxis[0].type).toBe("log");
	});

	test("a number and a pie take the first numbers", () => {
		const settings = {
			chartSettings: { xAxis: { column: "event" }, yAxis: [{ column: "n", settings: { formatting: { suffix: " ev" } } }] },
		};
		expect(resultPicture(result, { display: "BoldNumber", ...settings }).label).toBe("n: 487 ev");
		expect(resultPicture(result, { display: "ActionsPie", ...settings }).sheet.rows).toHaveLength(24);
	});

	test("at most 50 series are drawn", () => {
		const rows = Array.from({ length: 60 }, (_, i) => ["x", `s${i}`, i]);
		const picture = resultPicture(
			{ results: rows, columns: ["x", "s", "n"], types: ["String", "String", "UInt64"] },
			{ display: "ActionsBar", chartSettings: { seriesBreakdownColumn: "s" } },
		);
		expect(picture.legend).toHaveLength(50);
		expect(picture.note).toBe("Only 50 of 60 series are drawn.");
	});

	test("without a number there is nothing to draw", () => {
		expect(resultPicture({ results: [["a"]], columns: ["x"], types: ["String"] }, { display: "ActionsBar" }).body.is).toBe("empty");
	});

	test("numbers may be texts", () => {
		expect(["18446744073709551615", "1.5", "", "x", null, true].map(numberIn)).toEqual([2 ** 64, 1.5, null, null, null, 1]);
	});
});

test("countries have their codes, and none goes around the globe", () => {
	const all = shapes();
	expect(all.filter((s) => s.code === "").map((s) => s.name)).toEqual(["N. Cyprus", "Somaliland"]);
	expect(all.map((s) => s.code)).toEqual(expect.arrayContaining(["US", "DE", "RU", "FJ", "FR", "XK"]));
	for (const { name, path } of all) {
		for (const ring of path.split("M").slice(1)) {
			const xs = ring
				.replace("Z", "")
				.split("L")
				.map((point) => Number(point.split(",")[0]));
			const steps = xs.slice(1).map((x, i) => Math.abs(x - (xs[i] ?? 0)));
			expect(Math.max(...steps), name).toBeLessThan(200);
		}
	}
});

describe("sparklines", () => {
	test("a line is broken where there is nothing", () => expect(sparkPath([0, 10, null, 5], 30, 20)).toBe("M0.0,18.5L10.0,1.5M30.0,10.0"));
	test("one number is a flat line, and none is none", () => {
		expect(sparkPath([4], 30, 20)).toBe("M0,1.5H30");
		expect(sparkPath([], 30, 20)).toBe("");
		expect(sparkPath([null], 30, 20)).toBe("");
	});
});
