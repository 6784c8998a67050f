import { describe, expect, test } from "vitest";
import { sourceOf } from "../src/api/query";
import { readTags } from "../src/data/tags";
import {
	addressOfQuery,
	canAlert,
	drawable,
	endpointName,
	endpointNameMistake,
	endpointVariables,
	firstQuery,
	fixed,
	kindName,
	queryOfAddress,
	same,
	titleOf,
	withSource,
	withValueAt,
} from "../src/insights/model";

const trend = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "a" }] };
const sql = { kind: "HogQLQuery", query: "select 1" };

describe("nodes around queries", () => {
	test("sourceOf takes them off, withSource keeps them", () => {
		const saved = { kind: "InsightVizNode", full: true, source: trend };
		expect(sourceOf(saved)).toEqual(trend);
		expect(sourceOf(trend)).toEqual(trend);
		const funnel = { kind: "FunnelsQuery" };
		expect(withSource(saved, funnel)).toEqual({ kind: "InsightVizNode", full: true, source: funnel });
		const table = { kind: "DataVisualizationNode", display: "ActionsLineGraph", source: sql };
		expect(withSource(table, { ...sql, query: "select 2" })).toEqual({ ...table, source: { kind: "HogQLQuery", query: "select 2" } });
	});
	test("a bare query gets the node of its kind, and so does one of another kind", () => {
		expect(withSource(null, trend)).toEqual({ kind: "InsightVizNode", source: trend });
		expect(withSource(trend, trend)).toEqual({ kind: "InsightVizNode", source: trend });
		expect(withSource({ kind: "InsightVizNode", source: trend }, sql)).toEqual({ kind: "DataVisualizationNode", source: sql });
		expect(withSource(null, { kind: "EventsQuery" }).kind).toBe("DataTableNode");
	});
	test("a node without a source is its own", () => {
		expect(sourceOf({ kind: "InsightVizNode", source: null })).toEqual({ kind: "InsightVizNode", source: null });
	});
});

test("rows keep their digits, and what is drawn becomes numbers", () => {
	const insight = { id: 1, short_id: "a", name: "", derived_name: null, result: [[9007199254740993n]] };
	expect(drawable({ ...insight, query: { kind: "DataVisualizationNode", source: sql } }).result).toEqual([[9007199254740993n]]);
	expect(drawable({ ...insight, query: trend }).result).toEqual([[9007199254740992]]);
	expect(drawable({ ...insight, query: null }).result).toEqual([[9007199254740992]]);
});

describe("the query in an address", () => {
	test("goes there and back", () => {
		const odd = { kind: "HogQLQuery", query: "select 'a&b=c#d' + 1 % 2 -- ü" };
		expect(queryOfAddress(addressOfQuery(odd))).toEqual(odd);
		const large = { kind: "TrendsQuery", properties: [{ key: "id", operator: "gt", value: 9007199254740993n }] };
		expect(queryOfAddress(addressOfQuery(large))).toEqual(large);
		expect(queryOfAddress("", `#q=${encodeURIComponent(JSON.stringify(trend))}`)).toEqual(trend);
	});
	test("what is no query is none", () => {
		for (const search of ["", "?q=", "?q=1", "?q=[]", "?q={", '?q={"a":1}', '?q={"kind":1}', "?q=null"])
			expect(queryOfAddress(search)).toBeNull();
		expect(addressOfQuery(null)).toBe("");
	});
});

test("same ignores the order of fields, and fields without a value", () => {
	expect(same({ a: 1, b: [{ c: 2, d: 3 }] }, { b: [{ d: 3, c: 2, e: undefined }], a: 1 })).toBe(true);
	expect(same([1, 2], [2, 1])).toBe(false);
	expect(same({ a: null }, {})).toBe(false);
	expect(same([9007199254740993n], [9007199254740992n])).toBe(false);
});

test("names", () => {
	expect(kindName({ kind: "InsightVizNode", source: trend })).toBe("Trend");
	expect(kindName({ kind: "OtherQuery" })).toBe("Other");
	expect(kindName(null)).toBe("No query");
	expect(titleOf({ name: null, derived_name: null, query: trend })).toBe("Trend without a name");
	expect(readTags(" a, b,,a ,c d")).toEqual(["a", "b", "c d"]);
});

describe("endpoints", () => {
	test("names", () => {
		expect(endpointName("Daily visitors (web)")).toBe("daily-visitors-web");
		expect(endpointName("2023: Größe")).toBe("grosse");
		expect(endpointName("…")).toBe("");
		for (const name of ["a", "orders_2-x", "A".repeat(128)]) expect(endpointNameMistake(name)).toBe("");
		for (const name of ["1a", "a b", "-a", "a.b", "ä", "A".repeat(129)]) expect(endpointNameMistake(name)).not.toBe("");
	});
	test("variables", () => {
		expect(endpointVariables(trend)).toEqual(["date_from", "date_to"]);
		const broken = { ...trend, breakdownFilter: { breakdowns: [{ property: "$browser" }, { property: "plan" }] } };
		expect(endpointVariables(broken)).toEqual(["date_from", "date_to", "$browser", "plan"]);
		expect(endpointVariables({ ...trend, breakdownFilter: { breakdown: [1, "all"], breakdown_type: "cohort" } })).toEqual([
			"date_from",
			"date_to",
		]);
		expect(endpointVariables({ ...sql, variables: { x: { code_name: "year" } } })).toEqual(["year"]);
	});
});

describe("fixes of warnings", () => {
	const message = "No event named 'a' has been seen.";
	test("in a field", () => {
		const saved = { kind: "InsightVizNode", source: trend };
		const next = fixed(saved, { message, fix: "b", attr: "series.0.event" });
		expect(next).toEqual({ kind: "InsightVizNode", source: { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "b" }] } });
		expect(trend.series[0]?.event).toBe("a");
	});
	test("in a text, counted in characters", () => {
		const query = { kind: "HogQLQuery", query: "select '😀', 'a'" };
		expect(fixed(query, { message, fix: "'b'", start: 12, end: 15 })).toEqual({
			kind: "DataVisualizationNode",
			source: { kind: "HogQLQuery", query: "select '😀', 'b'" },
		});
	});
	test("nothing to put in", () => {
		expect(fixed(trend, { message, fix: null, attr: "series.0.event" })).toBeNull();
		expect(fixed(trend, { message, fix: "b", attr: "series.7.event" })).toBeNull();
		expect(withValueAt(trend, "__proto__.polluted", 1)).toBeNull();
		expect(({} as Record<string, unknown>).polluted).toBeUndefined();
	});
});

test("alerts watch trends alone", () => {
	expect(canAlert({ kind: "InsightVizNode", source: trend })).toBe(true);
	expect(canAlert({ kind: "InsightVizNode", source: { kind: "FunnelsQuery" } })).toBe(false);
	expect(canAlert(null)).toBe(false);
	expect(canAlert(withSource(null, firstQuery))).toBe(true);
});
