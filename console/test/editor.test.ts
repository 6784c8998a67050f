/// <reference types="node" />
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { breakdownsOf, cohortsOf, withBreakdowns, withCohorts } from "../src/editor/breakdowns";
import { fits, lastDay, modeOf, presets, setTimes, startOf, tooFine, withDays, withTimes, withWholeDays } from "../src/editor/dates";
import {
	countFilters,
	isAny,
	isGrouped,
	membersOf,
	newFilter,
	propertyOf,
	withAny,
	withGroup,
	withMember,
	withMembers,
	type Filters,
} from "../src/editor/filters";
import { formulasOf, mistakeIn, withFormulas } from "../src/editor/formulas";
import { fitted } from "../src/editor/funnel-steps";
import { type Fields, fieldsOf, isFields, listOf, withFields, withInner, withItem, withMoved } from "../src/editor/json";
import { changeKind, insightIn, isInsight, kinds, KindSwitch, newInsight, withInsight } from "../src/editor/kinds";
import { mathOf, mathsFor, mathsOf, withMath, withMathProperty } from "../src/editor/maths";
import { fieldOf, nearest } from "../src/editor/mistakes";
import { operatorOf, operatorsFor, operatorsOf, valuesOf, withOperator } from "../src/editor/operators";
import { asRetentionEntity, asSeries, entityOf, letterOf, nodesOf, retentionEntity, withEntity, withNodes } from "../src/editor/series";

/** The insights of the cases of conformance: what clients really send and save. */
const saved = insightsBelow(join(import.meta.dirname, "../../tests/conformance/testdata"));

function insightsBelow(folder: string): Fields[] {
	const found = new Map<string, Fields>();
	const look = (value: unknown): void => {
		if (Array.isArray(value)) value.forEach(look);
		if (!isFields(value)) return;
		if (isInsight(value)) found.set(JSON.stringify(value), value);
		Object.values(value).forEach(look);
	};
	const walk = (at: string): void => {
		for (const name of readdirSync(at)) {
			const path = join(at, name);
			if (statSync(path).isDirectory()) walk(path);
			else if (name.endsWith(".json")) look(JSON.parse(readFileSync(path, "utf8")));
		}
	};
	walk(folder);
	return [...found.values()];
}

const text = (value: unknown) => JSON.stringify(value);

/** All filters of a query that are no groups. */
function leaves(filters: unknown): Fields[] {
	return membersOf(filters as Filters).flatMap((m) => (isFields(m) && "values" in m ? leaves(m) : [fieldsOf(m)]));
}

describe("what clients have saved stays as it is", () => {
	test("there are insights of every kind", () => {
		for (const kind of kinds) expect(saved.filter((q) => q.kind === kind.value).length, kind.value).toBeGreaterThan(3);
	});

	test("breakdowns that are written as they were read", () => {
		for (const query of saved) {
			const filter = fieldsOf(query.breakdownFilter);
			const cohorts = cohortsOf(filter);
			if (cohorts?.length) expect(sorted(withCohorts(filter, cohorts)), text(query)).toBe(sorted(asIs(filter)));
			const items = breakdownsOf(filter);
			if (items.length === 0) continue;
			expect(meaning(withBreakdowns(filter, items)), text(query)).toBe(meaning(filter));
		}
	});

	test("series and their maths", () => {
		for (const query of saved) {
			for (const series of listOf(query.series).map(fieldsOf)) {
				const entity = entityOf(series);
				if (series.kind === "ActionsNode" && typeof series.id !== "number") continue; // the case fills it in
				if (entity && series.name === undefined)
					expect(meaning(withEntity(series, entity))).toBe(meaning({ kind: "EventsNode", ...series }));
				if (!entity) expect(withNodes(series, nodesOf(series))).toEqual(series);
				expect(mathsFor(series, "TrendsQuery", []).some((m) => m.id === mathOf(series, "TrendsQuery"))).toBe(true);
			}
		}
	});

	test("filters", () => {
		for (const query of saved) {
			const filters = query.properties as Filters;
			expect(withMembers(filters, membersOf(filters))).toEqual(filters ?? []);
			for (const filter of leaves(filters)) {
				if (filter.type === "behavioral" || filter.type === "hogql") continue;
				const operator = operatorsOf(filter, null).find((o) => o.value === operatorOf(filter));
				expect(operator, text(filter)).toBeDefined();
				if (!operator || operator.input === "cohort") continue;
				expect(meaning(withOperator(filter, operator)), text(filter)).toBe(meaning({ ...filter, operator: operatorOf(filter) }));
			}
		}
	});

	test("dates can be shown in the mode that they get", () => {
		for (const query of saved) {
			const range = fieldsOf(query.dateRange);
			expect(fits(range, modeOf(range)), text(range)).toBe(true);
			expect(startOf(modeOf(range), range, "2026-01-31")).toBe(range);
		}
	});

	test("formulas", () => {
		for (const query of saved) {
			const filter = fieldsOf(query.trendsFilter);
			if (Array.isArray(filter.formulaNodes)) expect(withFormulas(filter, formulasOf(filter))).toEqual(filter);
		}
	});

	test("a change of one field leaves all others alone", () => {
		for (const query of saved) {
			const changed = withFields(query, { interval: "week" });
			expect(withFields(changed, { interval: query.interval })).toEqual(query);
			expect(Object.keys(query).every((name) => name in changed)).toBe(true);
		}
	});

	test("there and back again", () => {
		for (const query of saved) {
			for (const { value: kind } of kinds) {
				const kindSwitch = new KindSwitch();
				const there = kindSwitch.to(query as never, kind);
				const back = kindSwitch.to(there, query.kind as never);
				expect(sorted(back), `${text(query)} as ${kind}`).toBe(sorted(query));
			}
		}
	});
});

/** What an object means: without fields that are empty or the default, in any order. */
function meaning(value: unknown): string {
	return text(value, (v) => v !== undefined && v !== null && v !== false);
	function text(v: unknown, keep: (v: unknown) => boolean): string {
		if (Array.isArray(v)) return `[${v.map((item) => text(item, keep)).join()}]`;
		if (!isFields(v)) return JSON.stringify(v) ?? "";
		const fields = Object.entries(v).filter(
			([name, item]) => keep(item) && !(name === "breakdown_type" && item === "event") && name !== "type",
		);
		return `{${fields
			.map(([name, item]) => `${name}:${text(item, keep)}`)
			.toSorted((a, b) => a.localeCompare(b))
			.join()}}`;
	}
}

const sorted = (value: unknown): string =>
	JSON.stringify(value, (_, v) => (isFields(v) ? Object.fromEntries(Object.entries(v).toSorted(([a], [b]) => a.localeCompare(b))) : v));

/** The number 0 is another name of all people. */
const asIs = (filter: Fields): Fields => ({
	...filter,
	breakdown: [filter.breakdown].flat().map((id) => (String(id) === "0" ? "all" : id)),
});

describe("json", () => {
	test("fields keep their places, and undefined takes one out", () => {
		expect(Object.keys(withFields({ a: 1, b: 2, c: 3 }, { b: 4 }))).toEqual(["a", "b", "c"]);
		expect(withFields({ a: 1, b: 2 }, { a: undefined })).toEqual({ b: 2 });
	});

	test("an inner object appears when it is needed, and one that was there stays", () => {
		const node: Fields = { kind: "TrendsQuery" };
		expect(withInner(node, "trendsFilter", { showLegend: undefined })).toBe(node);
		expect(withInner(node, "trendsFilter", { showLegend: true })).toEqual({ kind: "TrendsQuery", trendsFilter: { showLegend: true } });
		expect(withInner({ trendsFilter: { showLegend: true } } as Fields, "trendsFilter", { showLegend: undefined })).toEqual({
			trendsFilter: {},
		});
	});

	test("items are replaced, taken out and moved", () => {
		expect(withItem([1, 2, 3], 1, 9)).toEqual([1, 9, 3]);
		expect(withItem([1, 2, 3], 1, undefined)).toEqual([1, 3]);
		expect(withMoved(["a", "b", "c"], 0, 2)).toEqual(["b", "c", "a"]);
		expect(withMoved(["a", "b"], 1, 5)).toEqual(["a", "b"]);
	});
});

describe("filters", () => {
	const a = { type: "event", key: "a", value: ["1"], operator: "exact" };
	const b = { type: "person", key: "b", value: ["2"], operator: "exact" };

	test("a list of which any is enough becomes groups, as other clients write them", () => {
		const any = withAny([a, b], true);
		expect(any).toEqual({ type: "AND", values: [{ type: "OR", values: [a, b] }] });
		expect(isGrouped(any)).toBe(true);
		expect(isAny(membersOf(any)[0] as Filters)).toBe(true);
		expect(countFilters(any)).toBe(2);
	});

	test("a group is added beside a list or other groups", () => {
		expect(withGroup([a], b)).toEqual({
			type: "AND",
			values: [
				{ type: "AND", values: [a] },
				{ type: "AND", values: [b] },
			],
		});
		expect(membersOf(withGroup(withGroup([a], b), a))).toHaveLength(3);
	});

	test("a group goes with its last filter", () => {
		const two = withGroup([a], b);
		expect(withMember(two, 1, withMember(membersOf(two)[1] as Filters, 0, undefined))).toEqual({
			type: "AND",
			values: [{ type: "AND", values: [a] }],
		});
	});

	test("new filters have no effect before they have a value, but for those that need none", () => {
		expect(newFilter({ type: "event", key: "a" }, "exact")).toEqual({ type: "event", key: "a", operator: "exact", value: null });
		expect(newFilter({ type: "group", key: "a", group_type_index: 2 }, "exact")).toMatchObject({ group_type_index: 2 });
		expect(newFilter({ type: "cohort", key: "5" }, "in")).toEqual({ type: "cohort", key: "id", operator: "in", value: 5 });
		expect(newFilter({ type: "hogql", key: "1 = 1" }, "exact")).toEqual({ type: "hogql", key: "1 = 1", value: null });
	});

	test("a cohort is known by its older names", () => {
		expect(propertyOf({ type: "static-cohort", key: "id", value: 7 })).toMatchObject({ type: "cohort", key: "7" });
		expect(operatorOf({ type: "cohort", key: "id", value: 7, negation: true })).toBe("not_in");
	});
});

describe("operators", () => {
	const named = (type: string, key: string, declared: Parameters<typeof operatorsFor>[2]) =>
		operatorsFor(type, key, declared).map((o) => o.value);

	test("they are those of the type", () => {
		expect(named("event", "a", "Boolean")).toEqual(["exact", "is_not", "is_set", "is_not_set"]);
		expect(named("event", "a", "DateTime")).toEqual(["is_date_before", "is_date_after", "is_date_exact", "is_set", "is_not_set"]);
		expect(named("event", "a", "Numeric")).not.toContain("icontains");
		expect(named("event", "a", "String")).not.toContain("gt");
		expect(named("element", "selector", null)).toEqual(["exact", "is_not"]);
		expect(named("cohort", "id", null)).toEqual(["in", "not_in"]);
	});

	test.each(["cohort", "static-cohort", "precalculated-cohort"])("a filter of the type %s is a membership", (type) => {
		expect(operatorsOf({ type, key: "id", value: 3 }, null).map((o) => o.value)).toEqual(["in", "not_in"]);
		expect(operatorOf({ type, key: "id", value: 3 })).toBe("in");
		expect(operatorOf({ type, key: "id", value: 3, operator: "exact", negation: true })).toBe("not_in");
	});

	test("one that is not offered stays", () => {
		const own = operatorsOf({ type: "event", key: "a", operator: "semver_gt", value: "1.2.3" }, "String");
		expect(own.at(-1)).toMatchObject({ value: "semver_gt", input: "one" });
	});

	test.each([
		["exact", ["a", "b"], "icontains", "a"],
		["icontains", "a", "exact", ["a"]],
		["exact", ["5"], "gt", 5],
		["exact", ["a"], "gt", null],
		["gt", 5, "is_set", undefined],
		["gt", 5, "between", null],
		["exact", ["9007199254740993"], "gt", 9007199254740993n],
		["exact", ["-9007199254740993", "0.5"], "between", [-9007199254740993n, 0.5]],
		["gt", 9007199254740993n, "exact", ["9007199254740993"]],
		["exact", null, "is_not", null],
	])("the value of %s %j goes on as that of %s", (from, value, to, want) => {
		const operator = operatorsFor("event", "a", null).find((o) => o.value === to);
		expect(operator).toBeDefined();
		if (operator) expect(withOperator({ type: "event", key: "a", operator: from, value }, operator).value).toEqual(want);
	});

	test("values are texts", () => expect(valuesOf(["a", 1, true])).toEqual(["a", "1", "true"]));
});

describe("maths", () => {
	const groups = [{ index: 1, name: "companies" }];

	test("what only the old math needed goes", () => {
		const sum = withMathProperty(withMath({ kind: "EventsNode", event: "a" }, "sum", "TrendsQuery"), { type: "person", key: "age" });
		expect(sum).toEqual({ kind: "EventsNode", event: "a", math: "sum", math_property: "age", math_property_type: "person_properties" });
		expect(withMath(sum, "p90", "TrendsQuery")).toMatchObject({ math: "p90", math_property: "age" });
		expect(withMath(sum, "dau", "TrendsQuery")).toEqual({ kind: "EventsNode", event: "a", math: "dau" });
	});

	test("groups are counted by their type", () => {
		expect(mathsOf("TrendsQuery", groups).map((m) => m.id)).toContain("unique_group::1");
		const unique = withMath({ event: "a" }, "unique_group::1", "TrendsQuery");
		expect(unique).toEqual({ event: "a", math: "unique_group", math_group_type_index: 1 });
		expect(mathOf(unique, "TrendsQuery")).toBe("unique_group::1");
	});

	test("the default is not written where there was none", () => {
		expect(withMath({ event: "a" }, "total", "TrendsQuery")).toEqual({ event: "a" });
		expect(withMath({ event: "a", math: "dau" }, "total", "TrendsQuery")).toEqual({ event: "a", math: "total" });
	});
});

describe("series", () => {
	test("they are lettered", () => expect([0, 1, 25, 26, 27, 52].map(letterOf)).toEqual(["A", "B", "Z", "AA", "AB", "BA"]));

	test("another event keeps filters and math", () => {
		const node = { kind: "EventsNode", event: "a", name: "a", math: "dau", properties: [{ key: "x" }], custom_name: "Mine" };
		expect(withEntity(node, { action: 5, name: "Joined" })).toEqual({
			kind: "ActionsNode",
			id: 5,
			name: "Joined",
			math: "dau",
			properties: [{ key: "x" }],
			custom_name: "Mine",
		});
		expect(withEntity(withEntity(node, { action: 5, name: "Joined" }), { event: null })).toMatchObject({ kind: "EventsNode", event: null });
	});

	test("several events are a group, one is none", () => {
		const both = withNodes({ kind: "EventsNode", event: "a", math: "dau" }, [
			{ kind: "EventsNode", event: "a" },
			{ kind: "EventsNode", event: "b" },
		]);
		expect(both).toMatchObject({ kind: "GroupNode", operator: "OR", math: "dau" });
		expect(both).not.toHaveProperty("event");
		expect(withNodes(both, [{ kind: "EventsNode", event: "b" }])).toMatchObject({ kind: "EventsNode", event: "b", math: "dau" });
	});

	test("events of a retention", () => {
		expect(retentionEntity(undefined)).toEqual({ event: "$pageview" });
		expect(retentionEntity({ id: "3", type: "actions" })).toEqual({ action: 3, name: "" });
		expect(retentionEntity({ id: null, type: "events" })).toEqual({ event: null });
		const node = { kind: "ActionsNode", id: 3, name: "Joined", properties: [{ key: "x" }] };
		expect(asSeries(asRetentionEntity(node))).toEqual(node);
	});
});

describe("breakdowns", () => {
	test("one is in the older fields, several are a list", () => {
		const one = withBreakdowns({}, [{ type: "person", key: "plan" }]);
		expect(one).toEqual({ breakdown: "plan", breakdown_type: "person" });
		const two = withBreakdowns(one, [...breakdownsOf(one), { type: "event", key: "x", bins: 5 }]);
		expect(two).toEqual({
			breakdowns: [
				{ property: "plan", type: "person" },
				{ property: "x", type: "event", histogram_bin_count: 5 },
			],
		});
		expect(withBreakdowns({ ...two, breakdown_limit: 3 }, [])).toEqual({});
	});

	test("cohorts take the place of properties", () => {
		expect(withCohorts({ breakdown: "plan", breakdown_type: "event" }, ["5", "all"])).toEqual({
			breakdown_type: "cohort",
			breakdown: [5, "all"],
		});
		expect(cohortsOf({ breakdown_type: "cohort", breakdown: 5 })).toEqual(["5"]);
		expect(withCohorts({ breakdown_type: "cohort", breakdown: [5] }, [])).toEqual({});
	});
});

describe("dates", () => {
	test.each([
		[{}, "preset"],
		[{ date_from: "-7d", explicitDate: true }, "relative"],
		[{ date_from: "-3h" }, "relative"],
		[{ date_from: "2026-01-01" }, "absolute"],
		[{ date_from: "2026-01-01T10:00:00", date_to: "2026-01-02T10:00:00" }, "absolute"],
		[{ date_from: "-3mStart", date_to: "-1mEnd" }, "text"],
		[{ date_from: "2026-01-01T10:00:00Z" }, "text"],
	])("%j is edited as %s", (range, mode) => expect(modeOf(range)).toBe(mode));

	test("times of day can be had and left", () => {
		const days = { date_from: "2026-01-01", date_to: "2026-01-31T23:59:59.999999" };
		const times = setTimes(days, true);
		expect(times).toEqual({ date_from: "2026-01-01T00:00:00", date_to: "2026-01-31T23:59:59", explicitDate: true });
		expect(setTimes(times, false)).toEqual(days);
	});

	test("a range of days has all hours of its last day", () => {
		const day = withDays({ date_from: "-7d", daysOfWeek: [1] }, "2026-01-31", "2026-01-31");
		expect(day).toEqual({ date_from: "2026-01-31", date_to: "2026-01-31T23:59:59.999999", daysOfWeek: [1] });
		expect([modeOf(day), withTimes(day), lastDay(String(day.date_to))]).toEqual(["absolute", false, "2026-01-31"]);
		expect(startOf("absolute", {}, "2026-01-31")).toEqual({ date_from: "2026-01-01", date_to: "2026-01-31T23:59:59.999999" });
		expect(withDays(day, "2026-01-01", "")).toEqual({ date_from: "2026-01-01", daysOfWeek: [1] });
		expect(tooFine(day, "second")).toBe(true);
		expect(tooFine(day, "minute")).toBe(false);
	});

	test.each([
		["2026-01-31", "2026-01-31"],
		["2026-01-31T23:59:59", "2026-01-31T23:59:59"],
		["-1dEnd", "-1dEnd"],
		["", ""],
	])("the last day %j is %j", (to, want) => expect(lastDay(to)).toBe(want));

	test.each([
		[{ date_from: "2026-01-31", date_to: "2026-01-31" }, "hour", "2026-01-31T23:59:59.999999"],
		[{ date_from: "-7d", date_to: "2026-01-31" }, "minute", "2026-01-31T23:59:59.999999"],
		[{ date_from: "2026-01-31", date_to: "2026-01-31" }, "day", "2026-01-31"],
		[{ date_from: "2026-01-31", date_to: "2026-01-31" }, "month", "2026-01-31"],
		[{ date_from: "2026-01-31", date_to: "2026-01-31", explicitDate: true }, "hour", "2026-01-31"],
		[{ date_from: "-1dStart", date_to: "-1dEnd" }, "hour", "-1dEnd"],
		[{ date_from: "-7d" }, "hour", undefined],
	])("%j by %s ends %j", (range, interval, want) => {
		const got = withWholeDays(range, interval);
		expect(got).toEqual({ ...range, ...(want && { date_to: want }) });
		if (got.date_to === (range as { date_to?: string }).date_to) expect(got).toBe(range);
	});

	test("intervals that are too short for the range are known", () => {
		expect(tooFine({ date_from: "-30d" }, "second")).toBe(true);
		expect(tooFine({ date_from: "-30d" }, "hour")).toBe(false);
		expect(tooFine({ date_from: "2020-01-01", date_to: "2023-12-31" }, "hour")).toBe(true);
		expect(tooFine({ date_from: "all" }, "second")).toBe(false);
		for (const p of presets) expect(tooFine({ date_from: p.from ?? undefined, date_to: p.to ?? undefined }, "day"), p.id).toBe(false);
	});
});

describe("formulas", () => {
	test("older forms become nodes when they change", () => {
		expect(withFormulas({ formula: "A/B", showLegend: true }, formulasOf({ formula: "A/B" }))).toEqual({
			showLegend: true,
			formulaNodes: [{ formula: "A/B" }],
		});
		expect(formulasOf({ formulas: ["A", "B"] })).toEqual([{ formula: "A" }, { formula: "B" }]);
		expect(withFormulas({ formulaNodes: [{ formula: "A" }] }, [])).toEqual({});
	});

	test("letters without a series are told", () => {
		expect(mistakeIn("A / C", ["A", "B"])).toBe("There is no series C.");
		expect(mistakeIn("a / B * 100", ["A", "B"])).toBe("");
	});
});

describe("kinds", () => {
	const trend = {
		kind: "TrendsQuery",
		series: [
			{ kind: "EventsNode", event: "a", math: "dau" },
			{ kind: "EventsNode", event: "b", math: "sum", math_property: "x", math_property_type: "event_properties" },
		],
		dateRange: { date_from: "-30d" },
		interval: "week",
		properties: [{ type: "event", key: "x", value: ["1"], operator: "exact" }],
		filterTestAccounts: true,
		trendsFilter: { display: "ActionsBar" },
		compareFilter: { compare: true },
	};

	test("dates, filters and events stay", () => {
		for (const { value: kind } of kinds) {
			const other = changeKind(trend, kind);
			expect(other).toMatchObject({ kind, dateRange: trend.dateRange, properties: trend.properties, filterTestAccounts: true });
		}
		expect(changeKind(trend, "FunnelsQuery")).not.toHaveProperty("compareFilter");
		expect(changeKind(trend, "FunnelsQuery").series).toEqual([
			{ kind: "EventsNode", event: "a" },
			{ kind: "EventsNode", event: "b" },
		]);
		expect(changeKind(trend, "RetentionQuery").retentionFilter).toMatchObject({
			period: "Week",
			targetEntity: { id: "a", type: "events" },
			returningEntity: { id: "b", type: "events" },
		});
		expect(listOf(changeKind(trend, "LifecycleQuery").series)).toEqual([{ kind: "EventsNode", event: "a" }]);
	});

	test("a funnel has two steps, and loses the second again", () => {
		const funnel = changeKind(newInsight("TrendsQuery", "a"), "FunnelsQuery");
		expect(listOf(funnel.series)).toHaveLength(2);
		expect(listOf(changeKind(funnel, "TrendsQuery").series)).toEqual([{ kind: "EventsNode", event: "a" }]);
	});

	test("a way over several kinds brings everything back, unless what is counted was changed", () => {
		const kindSwitch = new KindSwitch();
		const lifecycle = kindSwitch.to(kindSwitch.to(trend, "RetentionQuery"), "LifecycleQuery");
		expect(kindSwitch.to(lifecycle, "TrendsQuery")).toEqual(trend);
		const changed = withFields(kindSwitch.to(trend, "LifecycleQuery"), { series: [{ kind: "EventsNode", event: "c" }] });
		expect(kindSwitch.to(changed, "TrendsQuery")).toMatchObject({
			series: [{ kind: "EventsNode", event: "c" }],
			trendsFilter: trend.trendsFilter,
		});
	});

	test("the node around an insight stays", () => {
		const node = { kind: "InsightVizNode", source: trend, full: true };
		expect(insightIn(node)).toBe(trend);
		expect(withInsight(node, { ...trend, interval: "day" })).toEqual({ ...node, source: { ...trend, interval: "day" } });
		expect(insightIn({ kind: "DataVisualizationNode", source: { kind: "HogQLQuery" } })).toBeUndefined();
	});
});

describe("steps", () => {
	test("what names steps follows their number", () => {
		const filter = { funnelToStep: 2, breakdownAttributionValue: 2, exclusions: [{ event: "x", funnelFromStep: 1, funnelToStep: 2 }] };
		expect(fitted(filter, 3, 2)).toEqual({
			funnelsFilter: { funnelToStep: 1, breakdownAttributionValue: 1, exclusions: [{ event: "x", funnelFromStep: 0, funnelToStep: 1 }] },
		});
		expect(fitted(filter, 3, 4)).toMatchObject({
			funnelsFilter: { funnelToStep: 3, exclusions: [{ funnelFromStep: 1, funnelToStep: 3 }] },
		});
		expect(fitted({}, 3, 2)).toEqual({});
	});
});

describe("mistakes", () => {
	test("they are shown at the nearest field", () => {
		const fields = ["series", "series.1", "series.1.math_property", "properties"];
		expect(nearest("series.1.math_property", fields)).toBe("series.1.math_property");
		expect(nearest("series.1.event", fields)).toBe("series.1");
		expect(nearest("series.10.event", fields)).toBe("series");
		expect(nearest("samplingFactor", fields)).toBe("");
	});

	test("nodes around the insight are left out", () => {
		expect(fieldOf("query.source.series.0")).toBe("series.0");
		expect(fieldOf("source.properties")).toBe("properties");
		expect(fieldOf(null)).toBe("");
	});
});
