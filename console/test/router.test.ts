import { beforeAll, describe, expect, test, vi } from "vitest";

let router: typeof import("../src/router");

/** The browser's history, the entry that it shows, and what it tells of another. */
let entries = [{ state: null as unknown, to: "/" }];
let shown = 0;
let stepped = () => {};

function step(steps: number): void {
	if (!entries[shown + steps]) return;
	shown += steps;
	stepped();
}

beforeAll(async () => {
	const history = {
		get state() {
			return entries[shown]?.state;
		},
		pushState: (state: unknown, _: string, to: string) => {
			entries = [...entries.slice(0, shown + 1), { state, to }];
			shown++;
		},
		replaceState: (state: unknown, _: string, to = entries[shown]?.to ?? "") => {
			entries[shown] = { state, to };
		},
		go: (steps: number) => {
			setTimeout(() => step(steps));
		},
	};
	const location = {
		get pathname() {
			return new URL(this.href).pathname;
		},
		get search() {
			return new URL(this.href).search;
		},
		get href() {
			return new URL(entries[shown]?.to ?? "", "http://localhost/").href;
		},
	};
	const addEventListener = (name: string, listener: () => void) => {
		if (name === "popstate") stepped = listener;
	};
	vi.stubGlobal("window", { location, history, addEventListener, scrollTo: () => {} });
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

	test.each([
		["/project/1/insights", 1, false],
		["/project/@current/insights", 1, false],
		["/", 1, false],
		["/project/2", 1, true],
		["/project/2/insights", 1, true],
		["/project/12/insights", 1, true],
		["/project/2/insights", 0, false],
	])("%s belongs to another project than %i: %j", async (path, id, want) => {
		const { session } = await import("../src/session");
		session.value = { key: "", label: "", scopes: [], own: false, organization: "", project: { id, name: "" } };
		expect(router.ofAnotherProject(path)).toBe(want);
		session.value = null;
		expect(router.ofAnotherProject(path)).toBe(false);
	});

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

	test("a form over the page is asked first, and then the page", () => {
		const asked: string[] = [];
		let go = () => {};
		const guard = (name: string, fields: { tab: boolean; over?: boolean }) => ({
			...fields,
			ask: (leave: () => void) => {
				asked.push(name);
				go = leave;
			},
		});
		const at = () => router.place.value.path + router.place.value.search;
		router.navigate("/a");
		router.guards.value = [
			guard("part", { tab: false }),
			guard("page", { tab: false }),
			guard("lower form", { tab: true, over: true }),
			guard("form", { tab: true, over: true }),
		];
		for (const want of [["form"], ["lower form"], ["page"], []]) {
			if (want[0] === "form") router.navigate("/b");
			else go();
			expect(asked.splice(0)).toEqual(want);
			expect(at()).toBe(want.length ? "/a" : "/b");
		}
		router.navigate("/b?tab=c");
		go();
		expect(asked).toEqual(["form", "lower form"]);
		expect(at()).toBe("/b");
		go();
		expect(at()).toBe("/b?tab=c");
		router.leave(() => asked.push("gone"));
		go();
		go();
		go();
		expect(asked.splice(2)).toEqual(["form", "lower form", "page", "gone"]);
		router.guards.value = [];
	});

	test("Back and Forward are asked, and the history stays as it is", async () => {
		vi.useFakeTimers();
		let asked = 0;
		let go = () => {};
		entries = [{ state: null, to: "/" }];
		shown = 0;
		stepped(); // the first entry gets its number
		for (const to of ["/1", "/2", "/3", "/4"]) router.navigate(to);
		step(-2);
		router.guards.value = [{ tab: false, ask: (leave) => void (asked++, (go = leave)) }];
		const all = () => entries.map(({ to }) => to).join(" ");
		for (const steps of [-1, -2, 1, 2]) {
			step(steps);
			await vi.runAllTimersAsync();
			expect([all(), shown, router.place.value.path]).toEqual(["/ /1 /2 /3 /4", 2, "/2"]);
		}
		expect(asked).toBe(4);
		go();
		await vi.runAllTimersAsync();
		expect([all(), shown, router.place.value.path]).toEqual(["/ /1 /2 /3 /4", 4, "/4"]);
		router.guards.value = [];
		step(-3);
		expect(router.place.value.path).toBe("/1");
		vi.useRealTimers();
	});
});
