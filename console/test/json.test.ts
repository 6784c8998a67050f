import { expect, test } from "vitest";
import { parse, readNumber, rounded, stringify } from "../src/api/json";
import { numberIn, numericColumns } from "../src/charts/options/result";
import { typeOf } from "../src/data/value";
import { readAnswer } from "../src/pages/endpoints/read";
import { valueOf, writtenAs } from "../src/pages/persons/values";
import { csv } from "../src/ui/csv";
import { text } from "../src/ui/format";

test.each([
	["null", null],
	["9007199254740991", 9007199254740991],
	["-9007199254740991", -9007199254740991],
	["9007199254740992", 9007199254740992n],
	["-9007199254740993", -9007199254740993n],
	["18446744073709551615", 18446744073709551615n],
	["9007199254740993.0", 9007199254740992],
	["12345678901234567e3", 12345678901234567e3],
	["1.2345678901234567", 1.2345678901234567],
	['"9007199254740993"', "9007199254740993"],
	[String.raw`"a \" 9007199254740993 \\"`, 'a " 9007199254740993 \\'],
	['{"9007199254740993": [9007199254740993, "x"], "b": 1}', { "9007199254740993": [9007199254740993n, "x"], b: 1 }],
])("%s is read without rounding", (from, want) => {
	expect(parse(from)).toEqual(want);
});

test("what is no JSON is refused as JSON.parse does", () => {
	for (const wrong of ["", "01234567890123456789", "[12345678901234567890", "12345678901234567890-"]) {
		expect(() => parse(wrong)).toThrow(SyntaxError);
	}
	expect(parse(`["${"x\\n".repeat(3_000_000)}", 12345678901234567890]`)).toHaveLength(2);
});

test("what is written has the digits that were read", () => {
	const from = '{"id":9007199254740993,"all":[18446744073709551615,1,"9007199254740993"],"at":{"x":null}}';
	expect(stringify(parse(from))).toBe(from);
	expect(stringify(parse("[9007199254740993]"), 2)).toBe("[\n  9007199254740993\n]");
	expect(stringify(undefined)).toBe(undefined);
	expect(JSON.stringify([1n])).toBe("[1]");
});

test.each([
	["12", 12],
	[" -0.5 ", -0.5],
	["1e3", 1000],
	["9007199254740991", 9007199254740991],
	["-9007199254740993", -9007199254740993n],
	["9007199254740993.5", 9007199254740994],
	["", null],
	["many", null],
	["1e999", null],
])("%j is read as the number %s", (text, want) => expect(readNumber(text)).toBe(want));

test("what only draws gets the nearest numbers", () => {
	expect(rounded({ a: [9007199254740993n, "x", null], b: { c: 1n } })).toEqual({ a: [9007199254740992, "x", null], b: { c: 1 } });
});

test("large numbers are shown, exported and edited with their digits", () => {
	const large = parse("9007199254740993");
	expect(text(large)).toBe("9007199254740993");
	expect(csv(["id"], [[large]])).toBe("id\r\n9007199254740993\r\n");
	expect(typeOf(large)).toBe("number");
	expect(writtenAs(large)).toEqual({ kind: "number", text: "9007199254740993" });
	expect(valueOf("number", " 9007199254740993 ")).toBe(large);
	expect(valueOf("number", "12")).toBe(12);
	const list = parse('["a", {"id": 9007199254740993}]');
	const form = writtenAs(list);
	expect(valueOf(form.kind, form.text)).toEqual(list);
});

test("rows of an endpoint keep their digits", () => {
	const read = (format: "arrays" | "objects" | "ndjson", body: string) =>
		readAnswer({ raw: { nextCursor: "" }, text: body, format } as Parameters<typeof readAnswer>[0]).shown;
	const id = 9007199254740993n;
	expect(read("arrays", '{"columns":["id"],"types":["UInt64"],"results":[[9007199254740993]]}')?.rows).toEqual([[id]]);
	expect(read("objects", '{"results":[{"id":9007199254740993}]}')?.rows).toEqual([[id]]);
	expect(read("ndjson", '{"id":9007199254740993}\n{"id":1}\n')).toEqual({ columns: [{ title: "id", number: true }], rows: [[id], [1]] });
});

test("charts draw large numbers as numbers", () => {
	expect(numberIn(9007199254740993n)).toBe(9007199254740992);
	expect(numericColumns({ columns: ["n"], types: [""], rows: [[9007199254740993n], [null]] })).toEqual(["n"]);
});
