import { beforeAll, describe, expect, test, vi } from "vitest";

let router: typeof import("../src/router");

beforeAll(async () => {
	vi.stubGlobal("window", { location: { pathname: "/", search: "" }, addEventListener: () => {} });
	vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {}, removeItem: () => {} });
	router = await import("../src/router");
});

describe("router", () => {
	test.each([
		["/", ""],
		["/project/1", ""],
		["/project/1/", ""],
		["/project/@current/person/a%2Fb/", "person/a%2Fb"],
		["/else/1/x", ""],
	])("the project's part of %s is %j", (path, want) => expect(router.projectPath(path)).toBe(want));

	test.each([
		["", "", {}],
		["insights/:id", "insights/aBc", { id: "aBc" }],
		["person/:id", "person/a%2Fb%20c", { id: "a/b c" }],
		["person/:id", "person/100%", { id: "100%" }],
		["person/:id", "person/", null],
		["person/:id", "person/a/b", null],
		["insights/new", "insights/abc", null],
	])("%j in %j gives %j", (pattern, path, want) => expect(router.match(pattern, path)).toEqual(want));
});
