import { describe, expect, test } from "vitest";
import { boundTo, readFixed } from "../src/pages/keys/api";
import { covers, explainScope, levelOf, presets, withLevel } from "../src/pages/keys/scopes";

describe("scopes", () => {
	test("writing includes reading, and everything includes all", () => {
		expect(covers(["insight:write"], "insight:read")).toBe(true);
		expect(covers(["insight:read"], "insight:write")).toBe(false);
		expect(covers(["*"], "project:write")).toBe(true);
		expect(covers(["insights:read"], "insight:read")).toBe(false);
	});

	test("an object has one level", () => {
		expect(levelOf(["insight:read", "insight:write"], "insight")).toBe("write");
		expect(withLevel(["query:read", "insight:write"], "insight", "read")).toEqual(["insight:read", "query:read"]);
		expect(withLevel(["insight:write", "insight:read"], "insight", "none")).toEqual([]);
	});

	test("each scope of a preset is explained, and can be chosen", () => {
		for (const scope of presets.flatMap((preset) => preset.scopes)) {
			expect(explainScope(scope), scope).not.toBe("Grants nothing on this server.");
		}
		expect(explainScope("survey:read")).toBe("Grants nothing on this server.");
		expect(explainScope("group:write")).toBe("Grants nothing on this server.");
	});

	test("reading everything writes nothing", () => {
		expect(presets.find((p) => p.name === "Read everything")?.scopes.filter((s) => !s.endsWith(":read"))).toEqual([]);
	});
});

describe("what a key is bound to", () => {
	test("is read from lines", () => {
		expect(readFixed('customer_id = acme\n\n plans=["pro","team"]\nyear = 2024\nnote = a = b')).toEqual({
			customer_id: "acme",
			plans: ["pro", "team"],
			year: 2024,
			note: "a = b",
		});
		expect(readFixed("customer = 9007199254740993")).toEqual({ customer: 9007199254740993n });
		expect(() => readFixed("acme")).toThrow("write name = value");
		expect(() => readFixed("a = 1\na = 2")).toThrow("twice");
	});

	test("is told in words", () => {
		expect(boundTo({ fixed: { customer: "acme", years: [1] }, endpoints: ["orders", "usage"] })).toBe(
			"customer = acme; years = [1]; only orders, usage",
		);
		expect(boundTo({ fixed: null, endpoints: null })).toBe("");
	});
});
