import { beforeEach, expect, test, vi } from "vitest";
import { draftOf, dropDraft, keepDraft, nameOf } from "../src/sql/drafts";

let kept: Map<string, string>;
let room: number;

beforeEach(() => {
	kept = new Map();
	room = Infinity;
	vi.stubGlobal("sessionStorage", {
		getItem: (name: string) => kept.get(name) ?? null,
		setItem: (name: string, text: string) => {
			if (text.length > room) throw new DOMException("full", "QuotaExceededError");
			kept.set(name, text);
		},
	});
});

test("each origin has a draft of its own", () => {
	const [own, insight, link] = [nameOf({}), nameOf({ insight: "aBc", link: "select 1" }), nameOf({ link: "select 1" })];
	expect(new Set([own, insight, link, nameOf({ link: "" })]).size).toBe(4);
	keepDraft(own, "select 2");
	keepDraft(insight, "select 3");
	keepDraft(insight, "select 4");
	expect([draftOf(own), draftOf(insight), draftOf(link)]).toEqual(["select 2", "select 4", null]);
	dropDraft(insight);
	dropDraft(link);
	expect([draftOf(own), draftOf(insight)]).toEqual(["select 2", null]);
});

test("the oldest drafts go when there are many, or no room", () => {
	for (let i = 0; i < 30; i++) keepDraft(`link ${i}`, "x".repeat(10));
	expect([draftOf("link 9"), draftOf("link 10")]).toEqual([null, "x".repeat(10)]);
	room = 500;
	keepDraft("", "y");
	expect([draftOf(""), draftOf("link 29"), draftOf("link 10")]).toEqual(["y", "x".repeat(10), null]);
	room = 1;
	keepDraft("", "z");
	expect(draftOf("")).toBe("y");
});

test("what is not a list of drafts is none", () => {
	for (const text of ["{", "{}", "[1, null]"]) {
		kept.set("analytics.sql.drafts.0", text);
		expect(draftOf("")).toBe(null);
	}
});
