import { beforeAll, describe, expect, test, vi } from "vitest";

let router: typeof import("../src/router");

beforeAll(async () => {
	const location = { pathname: "/", search: "", href: "http://localhost/" };
	const history = {
		pushState: (_: unknown, __: string, to: string) => {
			const { pathname, search } = new URL(to, location.href);
			Object.assign(location, { pathname, search });
		},
	};
	vi.stubGlobal("window", { location, history, addEventListener: () => {}, scrollTo: () => {} });
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

	test.each([
		[{}, "/a"],
		[{ search: "", offset: "" }, "/a"],
		[{ search: "all", offset: "0", kind: "" }, "/a?search=all&offset=0"],
		[{ search: "a&b c" }, "/a?search=a%26b+c"],
	])("the address with %j", (fields, want) => expect(router.withSearch("/a", fields)).toBe(want));

	test("what would be lost is asked before the page is left, or another of its tabs opened", () => {
		const asked: string[] = [];
		let go = () => {};
		const guard = (name: string, tab: boolean) => ({
			tab,
			ask: (leave: () => void) => {
				asked.push(name);
				go = leave;
			},
		});
		const at = () => router.place.value.path + router.place.value.search;
		router.navigate("/a");
		router.guards.value = [guard("tab", true), guard("page", false)];
		router.navigate("/a?tab=b");
		expect([at(), asked]).toEqual(["/a", ["tab"]]);
		router.navigate("/b");
		expect([at(), asked]).toEqual(["/a", ["tab", "page"]]);
		go();
		expect(at()).toBe("/b");
		router.guards.value = [guard("page", false)];
		router.leave(() => asked.push("gone"));
		expect(asked).toEqual(["tab", "page", "page"]);
		go();
		expect(asked.splice(2)).toEqual(["page", "gone"]);
		router.navigate("/b?tab=c");
		router.navigate("/c", { sure: true });
		expect([at(), asked]).toEqual(["/c", ["tab", "page"]]);
		router.guards.value = [];
		router.leave(() => asked.push("gone"));
		expect(asked.at(-1)).toBe("gone");
	});
});
