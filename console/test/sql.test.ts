import { describe, expect, test } from "vitest";
import type { QueryNode } from "../src/api/query";
import { diagnostics } from "../src/sql/assist";
import { cutOf, takesLimit } from "../src/sql/limits";
import { fromCodePoints, toCodePoints } from "../src/sql/positions";
import { drawnOf, isSQL, plain, queryOf, writtenOf } from "../src/sql/saved";
import { fromQuery, toQuery, usedNames, usesFilters, type Variable, variableNameMistake } from "../src/sql/variables";
import { csv } from "../src/ui/csv";

describe("positions", () => {
	const text = "a😀b";

	test("an emoji is one code point and two units", () => {
		expect([0, 1, 3, 4].map((at) => toCodePoints(text, at))).toEqual([0, 1, 2, 3]);
		expect([0, 1, 2, 3, 9].map((count) => fromCodePoints(text, count))).toEqual([0, 1, 3, 4, 4]);
	});
});

test("mistakes are underlined where the API counts them, with their fixes", () => {
	const found = diagnostics("select '😀', evnt from events", {
		isValid: false,
		errors: [{ message: "Unable to resolve field: evnt", start: 12, end: 16, fix: "event" }],
		warnings: [{ message: "slow" }],
		notices: [],
	});
	expect(found.map(({ from, to, severity }) => ({ from, to, severity }))).toEqual([
		{ from: 13, to: 17, severity: "error" },
		{ from: 0, to: 29, severity: "warning" },
	]);
	expect(found[0]?.actions?.map((a) => a.name)).toEqual(["Replace with event"]);
	expect(found[1]?.actions).toEqual([]);
});

describe("limits", () => {
	test.each([
		["select number from (select number from numbers(500) limit 400)", true],
		["select event, 'offset 3' as \"offset\" from events -- no offset\nwhere /* offset */ like(event, '%)%')", true],
		["select event from events limit 1 by event", true],
		["select properties.offset from events", true],
		["select event from events offset 10", false],
	])("a LIMIT can be written behind %j: %j", (text, want) => expect(takesLimit(text)).toBe(want));

	test.each([
		["select 1 union all select 2", "parts"],
		["(select 1 limit 5) UNION DISTINCT (select 2)", "parts"],
		["select 1 union all select 2 limit 500", "parts"],
		["select 1 limit 500 union all select 2", "parts"],
		["select 1 limit 1 by event union all select 2 limit 500", "parts"],
		["select properties.limit union all select 2 limit 500", "parts"],
		["with a as (select 1 limit 5) (select 1 union all by name select 2)", "parts"],
		["select 1 limit 5 union all select 2 limit 500", undefined],
		["(select 1 limit 5) union all (select 2 order by f(1) limit 5) order by f(1)", undefined],
		["select 1 union all (select 2) limit 500", undefined],
		["(select 1 union all select 2) order by 1 limit 500", undefined],
		["select 1 except select 2", "result"],
		["select 1 union all select 2 INTERSECT select 3 limit 500", "result"],
		["(select 1 except (select 2))", "result"],
		["(select 1 intersect select 2) limit 500", undefined],
		["(select 1 except select 2) union all select 3 limit 500", "parts"],
		["select * from (select 1 union all select 2)", undefined],
		["select 'union', 'it''s a \\' union' -- union", undefined],
	])("of %j, what is cut is %j", (text, want) => expect(cutOf(text)).toBe(want));
	test("what is cut is known of a long text, too", () => {
		expect(cutOf(`select 1 union all {query} order by (${"1".repeat(20_000)})`)).toBe("parts");
	});
});

describe("variables", () => {
	const plan: Variable = { id: "1", name: "Plan", code_name: "plan", type: "String", default_value: "free", values: null, is_multi: false };

	test("null is no variables", () => {
		expect(toQuery("select {variables.plan}", [], {}, null)).toBeUndefined();
	});

	test("those of a text, once each", () => {
		expect(usedNames("select {variables.plan}, { variables . year } where {variables.plan} != {other}")).toEqual(["plan", "year"]);
		expect(usesFilters("where {filters}")).toBe(true);
		expect(usesFilters("where {filter}")).toBe(false);
	});

	test("have names in lower case", () => {
		expect(["customer_id", "_2"].map(variableNameMistake)).toEqual(["", ""]);
		expect(variableNameMistake("CustomerID")).toBe(
			"Names of variables are in lower case: write {variables.customerid} in place of {variables.CustomerID}.",
		);
	});

	test("values go into the query and come back", () => {
		const made = toQuery("{variables.plan} {variables.unknown}", [plan], { plan: "pro" });
		expect(made).toEqual({ "1": { variableId: "1", code_name: "plan", value: "pro" } });
		expect(fromQuery(made)).toEqual({ plan: "pro" });
	});

	test("what is not defined stays as it was, as long as the text uses it", () => {
		const before = { "9": { variableId: "9", code_name: "plan", value: "pro" }, "8": { variableId: "8", code_name: "year", isNull: true } };
		expect(toQuery("{variables.year} {variables.plan}", [], {}, before)).toEqual(before);
		expect(toQuery("{variables.plan}", [], { plan: "pro" }, before)).toEqual({ "9": before["9"] });
		expect(toQuery("{variables.plan}", [plan], { plan: "team" }, before)).toEqual({
			"1": { variableId: "1", code_name: "plan", value: "team" },
		});
		expect(toQuery("{variables.other}", [], {}, before)).toBeUndefined();
	});

	test("null is a value of its own, and nothing means the default", () => {
		expect(toQuery("{variables.plan}", [plan], { plan: null })).toEqual({ "1": { variableId: "1", code_name: "plan", isNull: true } });
		expect(toQuery("{variables.plan}", [plan], {})).toEqual({ "1": { variableId: "1", code_name: "plan" } });
		expect(toQuery("select 1", [plan], { plan: "pro" })).toBeUndefined();
	});
});

describe("a saved query", () => {
	const bare = (source: object = {}) => ({ kind: "HogQLQuery", query: "select {limit} from events where {filters}", ...source });
	const drawn = (source: object) => ({ kind: "DataVisualizationNode", source: bare(source) });
	const properties = [{ key: "plan", value: "pro", type: "person" }];
	const cases: [string, object][] = [
		["values, modifiers and a name", { values: { limit: 3 }, modifiers: { timings: true }, name: "Events" }],
		["no filters", {}],
		["filters without dates", { filters: { properties, filterTestAccounts: true } }],
		["filters with dates", { filters: { properties, filterTestAccounts: true, dateRange: { date_from: "-30d", explicitDate: true } } }],
		["filters that nothing uses", { query: "select 1", filters: { properties } }],
		["a variable that is not defined", { query: "{variables.plan}", variables: { "1": { variableId: "1", code_name: "plan" } } }],
	];
	test.each(cases)("with %s is the same after it was opened", (_, source) => {
		const query = drawn(source);
		expect(queryOf(writtenOf(query), [], query)).toEqual(query.source);
	});

	const nodes: [string, QueryNode][] = [
		["bare", bare()],
		["a table", { kind: "DataTableNode", source: bare(), showExport: true }],
		["drawn", { ...drawn({}), display: "ActionsPie", chartSettings: { xAxis: { column: "a" } }, tableSettings: { columns: [] } }],
	];
	test.each(nodes)("that is %s stays that", (_, query) => {
		const written = writtenOf(query);
		expect(isSQL(query)).toBe(true);
		expect(drawnOf(written, queryOf(written, [], query), query)).toEqual(query);
	});
	test.each(nodes)("that is %s can be drawn", (_, query) => {
		const written = { ...writtenOf(query), settings: { display: "ActionsBar" } as const };
		expect(drawnOf(written, bare(), query)).toMatchObject({ kind: "DataVisualizationNode", source: bare(), display: "ActionsBar" });
	});
	test("of another kind is not in SQL", () => {
		const others = [undefined, null, { kind: "TrendsQuery" }, { kind: "InsightVizNode", source: { kind: "TrendsQuery", query: "" } }];
		expect(others.filter(isSQL)).toEqual([]);
	});

	test("gets new dates, and loses them, beside its other filters", () => {
		const query = drawn({ filters: { properties, dateRange: { date_from: "-30d" } } });
		const written = writtenOf(query);
		const dates = { date_from: "-1d" };
		expect(queryOf({ ...written, dates }, [], query).filters).toEqual({ properties, dateRange: dates });
		expect(queryOf({ ...written, dates: {} }, [], query).filters).toEqual({ properties });
	});

	test("of a text alone has the dates of the last seven days", () => {
		expect(queryOf(plain("{filters}"), [])).toEqual({
			kind: "HogQLQuery",
			query: "{filters}",
			filters: { dateRange: { date_from: "-7d" } },
		});
	});
});

test("CSV quotes what has commas, quotes and lines, and spreadsheets run none of it", () => {
	expect(
		csv(
			["a", "b"],
			[
				["x,y", 'say "hi"'],
				["=1+1", -1],
				[null, { a: 1 }],
			],
		),
	).toBe('a,b\r\n"x,y","say ""hi"""\r\n\'=1+1,-1\r\n,"{""a"":1}"\r\n');
});
