import { describe, expect, test } from "vitest";
import type { QueryNode } from "../../src/api/query";
import { correlationActors, pathActors } from "../../src/charts/behind";
import { behind, pictureWith, plotOf, room, sample, samples } from "./support";
import { pictureOf } from "../../src/charts/picture";

describe("what is behind a number", () => {
	test("of a trend is its series, day and period; a previous day is named by the one it is compared with", () => {
		const picture = pictureWith("trend_line");
		expect(behind(picture, 1, 2)).toEqual({
			title: "Mergers, Sun, 2 Aug 2026",
			kind: "InsightActorsQuery",
			series: 1,
			day: "2026-08-02",
			compare: "current",
		});
		expect(behind(picture, 1, 3)).toEqual({
			title: "commit authored (previous), Sun, 19 Jul 2026",
			kind: "InsightActorsQuery",
			series: 0,
			day: "2026-08-02",
			compare: "previous",
		});
		expect(picture.sheet.rows[1]?.[2]?.behind?.().source.source).toEqual(sample("trend_line").query);
	});

	test("of a trend with breakdowns is the value as the result has it", () => {
		expect(behind(pictureWith("trend_breakdowns"), 0, 1)).toMatchObject({ breakdown: ["false", "$$_posthog_breakdown_null_$$"] });
		expect(behind(pictureWith("trend_breakdown"), 0, 5)).toMatchObject({ breakdown: "$$_posthog_breakdown_other_$$" });
	});

	test("of a whole range has no day", () => {
		expect(behind(pictureWith("trend_table"), 0, 3)).toEqual({
			title: "commit authored · false (previous)",
			kind: "InsightActorsQuery",
			series: 0,
			breakdown: "false",
			compare: "previous",
		});
	});

	test("of the first week is cut by the dates of the insight, and of another one is not", () => {
		const picture = pictureWith("trend_week");
		const rangeOf = (row: number) => (picture.sheet.rows[row]?.[1]?.behind?.().source.source as QueryNode | undefined)?.dateRange;
		expect(rangeOf(0)).toEqual({ date_from: "2026-06-01T00:00:00Z", date_to: "2026-08-22T23:59:59.999999Z", explicitDate: true });
		expect(rangeOf(1)).toEqual({ date_from: "2026-06-01", date_to: "2026-08-22" });
	});

	test("of a formula is nothing", () => {
		expect(
			pictureWith("trend_formula")
				.sheet.rows.flat()
				.some((cell) => cell.behind),
		).toBe(false);
	});

	test("of a funnel are those who reached a step, and those who did not", () => {
		const picture = pictureWith("funnel");
		expect(behind(picture, 1, 1)).toEqual({ title: "2. pull request merged", kind: "FunnelsActorsQuery", funnelStep: 2 });
		expect(behind(picture, 1, 4)).toEqual({
			title: "Dropped off before 2. pull request merged",
			kind: "FunnelsActorsQuery",
			funnelStep: -2,
		});
		expect(behind(picture, 0, 4)).toBeUndefined();
		expect(behind(pictureWith("funnel_breakdown"), 3, 2)).toMatchObject({ funnelStep: 2, funnelStepBreakdown: ["true"] });
	});

	test("of a funnel's trend are those who began then", () => {
		expect(behind(pictureWith("funnel_trends_breakdown"), 2, 1)).toEqual({
			title: "false converted, began Mar 2025",
			kind: "FunnelsActorsQuery",
			funnelTrendsDropOff: false,
			funnelTrendsEntrancePeriodStart: "2025-03-01 00:00:00",
			funnelStepBreakdown: ["false"],
		});
	});

	test("of a retention is the row, and the column as a filter", () => {
		const picture = pictureWith("retention");
		expect(behind(picture, 1, 1)).toEqual({ title: "Apr 2026, Month 0", kind: "InsightActorsQuery", interval: 1 });
		expect(behind(picture, 1, 3)).toEqual({
			title: "Apr 2026, Month 2",
			kind: "ActorsQuery",
			properties: [{ type: "hogql", key: "month_2 = 1" }],
		});
		expect(behind(pictureWith("retention_breakdown"), 5, 3)).toMatchObject({ properties: [{ key: "week_1 = 1" }] });
	});

	test("of an edge of paths are its two keys, beside the rest of the filter", () => {
		const { query } = sample("paths");
		expect(pathActors(query, { start: "1_a", end: "2_b" }).source).toEqual({
			...query,
			pathsFilter: { ...(query.pathsFilter as object), pathStartKey: "1_a", pathEndKey: "2_b" },
		});
		const plot = plotOf(pictureWith("paths"));
		const edge = plot.pick?.({
			series: "paths",
			index: 0,
			type: "edge",
			data: { source: "1_commit authored", target: "2_pull request merged" },
		});
		expect(edge?.title).toBe("commit authored → pull request merged, step 1 to 2");
		const node = plot.pick?.({ series: "paths", index: 0, type: "node", data: { name: "2_pull request merged" } });
		expect(node?.source.source).toMatchObject({ pathsFilter: { pathEndKey: "2_pull request merged" } });
	});

	test("of stickiness is the number of intervals, at least so many if it is cumulative", () => {
		expect(behind(pictureWith("stickiness"), 1, 2)).toMatchObject({
			kind: "StickinessActorsQuery",
			day: 2,
			operator: "exact",
			series: 0,
			compare: "previous",
		});
		expect(behind(pictureWith("stickiness_cumulative"), 2, 1)).toMatchObject({ day: 3, operator: "gte", series: 0 });
	});

	test("of a lifecycle is the status", () => {
		expect(behind(pictureWith("lifecycle"), 1, 4)).toMatchObject({ kind: "InsightActorsQuery", day: "2026-05-03", status: "dormant" });
	});

	test("of a correlation is its property, event, or event with a property", () => {
		expect(behind(pictureWith("correlation"), 0, 3)).toMatchObject({
			kind: "FunnelCorrelationActorsQuery",
			funnelCorrelationPersonConverted: false,
			funnelCorrelationPropertyValues: [{ type: "person", key: "first_seen_year", value: "2021", operator: "exact" }],
		});
		const query = sample("correlation").query;
		expect(correlationActors({ ...query, funnelCorrelationType: "events" }, "paid", true)).toMatchObject({
			funnelCorrelationPersonEntity: { kind: "EventsNode", event: "paid" },
		});
		expect(correlationActors({ ...query, funnelCorrelationType: "event_with_properties" }, "read::page::/a::b", true)).toMatchObject({
			funnelCorrelationPersonEntity: { event: "read", properties: [{ key: "page", value: "/a::b" }] },
		});
		expect(correlationActors(query, "plan::", true)).toMatchObject({
			funnelCorrelationPropertyValues: [{ key: "plan", operator: "is_not_set" }],
		});
	});

	test("of a place in a plot of lines is the nearest line; in stacked areas the one around it", () => {
		const near = (name: string, index: number, value: number, more = room) => plotOf(pictureWith(name)).near?.(index, () => value, more);
		expect(near("trend_line", 3, 26)?.title).toBe("commit authored, Tue, 4 Aug 2026");
		expect(near("trend_line", 3, 3.4)?.title).toBe("Mergers, Tue, 4 Aug 2026");
		expect(near("trend_line", 3, 26, { ...room, hidden: new Set([0]) })?.title).toBe("commit authored (previous), Tue, 21 Jul 2026");
		expect(near("trend_week", 1, 90)?.title).toBe("false, week of 7 Jun 2026");
		expect(near("trend_week", 1, 100)?.title).toBe("true, week of 7 Jun 2026");
		expect(near("trend_week", 1, 500)).toBeUndefined();
		expect(near("trend_line", 99, 5)).toBeUndefined();
	});
});

test("every cell with something behind it has a title and a drill-down into the insight", () => {
	for (const [name, { query, result }] of Object.entries(samples)) {
		for (const cell of pictureOf(query, result).sheet.rows.flat()) {
			const found = cell.behind?.();
			if (!found) continue;
			expect(found.title, name).not.toMatch(/undefined|NaN|\$\$/);
			expect(found.source.kind, name).toMatch(/ActorsQuery$/);
			let node = found.source;
			while (node.kind.endsWith("ActorsQuery")) node = node.source as QueryNode;
			expect(node.kind, name).toBe(query.kind);
		}
	}
});
