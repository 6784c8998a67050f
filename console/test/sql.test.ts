import { describe, expect, test } from "vitest";
import { diagnostics } from "../src/sql/assist";
import { fromCodePoints, toCodePoints } from "../src/sql/positions";
import { fromQuery, toQuery, usedNames, usesFilters, type Variable } from "../src/sql/variables";
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

describe("variables", () => {
	const plan: Variable = { id: "1", name: "Plan", code_name: "plan", type: "String", default_value: "free", values: null, is_multi: false };

	test("those of a text, once each", () => {
		expect(usedNames("select {variables.plan}, { variables . year } where {variables.plan} != {other}")).toEqual(["plan", "year"]);
		expect(usesFilters("where {filters}")).toBe(true);
		expect(usesFilters("where {filter}")).toBe(false);
	});

	test("values go into the query and come back", () => {
		const made = toQuery("{variables.plan} {variables.unknown}", [plan], { plan: "pro" });
		expect(made).toEqual({ "1": { variableId: "1", code_name: "plan", value: "pro" } });
		expect(fromQuery(made)).toEqual({ plan: "pro" });
	});

	test("null is a value of its own, and nothing means the default", () => {
		expect(toQuery("{variables.plan}", [plan], { plan: null })).toEqual({ "1": { variableId: "1", code_name: "plan", isNull: true } });
		expect(toQuery("{variables.plan}", [plan], {})).toEqual({ "1": { variableId: "1", code_name: "plan" } });
		expect(toQuery("select 1", [plan], { plan: "pro" })).toBeUndefined();
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
