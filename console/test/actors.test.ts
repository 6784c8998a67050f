import { describe, expect, test } from "vitest";
import { actorsCSV, actorsQuery, countQuery, insightOf, isGroup, listsEvents, nameOf, rowsOf } from "../src/actors/actors";
import { csv } from "../src/ui/csv";

const trend = { kind: "InsightActorsQuery", day: "2024-01-01", source: { kind: "TrendsQuery", series: [] } };
const funnel = { kind: "FunnelsActorsQuery", funnelStep: 1, source: { kind: "FunnelsQuery", series: [] } };

describe("queries", () => {
	test("a trend counts the events of each actor, and can list them", () => {
		expect(actorsQuery(trend, { search: "ann", offset: 50 })).toEqual({
			kind: "ActorsQuery",
			select: ["actor", "event_count"],
			orderBy: ["event_count DESC"],
			source: trend,
			limit: 50,
			offset: 50,
			search: "ann",
		});
		expect(listsEvents(trend)).toBe(true);
	});
	test("other insights know their actors alone", () => {
		expect(actorsQuery(funnel)).toEqual({ kind: "ActorsQuery", select: ["actor"], orderBy: [], source: funnel, limit: 50, offset: 0 });
		expect(listsEvents(funnel)).toBe(false);
		expect(insightOf({ kind: "FunnelCorrelationActorsQuery", source: { kind: "FunnelCorrelationQuery", source: funnel } }).kind).toBe(
			"FunnelsQuery",
		);
	});
	test("what is searched for is counted", () => {
		expect(countQuery(funnel, "x")).toMatchObject({ select: ["count() over ()"], limit: 1, search: "x" });
		expect(countQuery(funnel)).not.toHaveProperty("search");
	});
});

describe("rows", () => {
	const person = { id: "p1", properties: { name: "Ann" }, distinct_ids: ["a", "b"], created_at: "2024-01-01T00:00:00Z" };
	test("are read by the names of columns", () => {
		expect(rowsOf([[["a"], 3, person]], ["event_distinct_ids", "event_count", "actor"])).toEqual([{ actor: person, events: 3 }]);
		expect(rowsOf([["p2"]], ["actor"])).toEqual([{ actor: { id: "p2" }, events: null }]);
	});
	test("names: the email first, an id last", () => {
		expect(nameOf({ ...person, properties: { name: "Ann", email: "a@b.c" } })).toBe("a@b.c");
		expect(nameOf(person)).toBe("Ann");
		expect(nameOf({ id: "p1", distinct_ids: ["a"] })).toBe("a");
		expect(nameOf({ id: "p1" })).toBe("p1");
		const group = { id: "g", group_key: "acme", group_type_index: 0, properties: {} };
		expect(nameOf(group)).toBe("acme");
		expect(isGroup(group)).toBe(true);
		expect(isGroup(person)).toBe(false);
	});
	test("as CSV", () => {
		expect(actorsCSV([{ actor: person, events: 3 }])).toBe(
			"id,name,distinct_ids,created_at,events\r\np1,Ann,a b,2024-01-01T00:00:00Z,3\r\n",
		);
		expect(actorsCSV([{ actor: { id: "p2" }, events: null }])).toBe("id,name,distinct_ids,created_at\r\np2,p2,,\r\n");
	});
});

test("CSV quotes what has to be, and hands no formula to a spreadsheet", () => {
	expect(
		csv(
			["a", "b"],
			[
				['x "y"', "1,2"],
				["=HYPERLINK(1)", "@x"],
				["line\nbreak", null],
				["-1", -1],
				["-1.50", "-2e-7"],
				["-1+1", "+1"],
				["-1\n=A1", "-"],
			],
		),
	).toBe('a,b\r\n"x ""y""","1,2"\r\n\'=HYPERLINK(1),\'@x\r\n"line\nbreak",\r\n-1,-1\r\n-1.50,-2e-7\r\n\'-1+1,\'+1\r\n"\'-1\n=A1",\'-\r\n');
});

test("an actors query keeps its filters", () => {
	const source = { kind: "InsightActorsQuery", interval: 1, source: { kind: "RetentionQuery" } };
	const properties = [{ type: "hogql", key: "week_2 = 1" }];
	const given = { kind: "ActorsQuery", source, properties };
	expect(actorsQuery(given)).toMatchObject({ kind: "ActorsQuery", source, properties });
	expect(countQuery(given)).toMatchObject({ select: ["count() over ()"], source, properties });
	expect(listsEvents(given)).toBe(false);
});
