import { beforeEach, expect, test, vi } from "vitest";
import { draftOf, dropDraft, keepDraft, nameOf, type Written } from "../src/sql/drafts";

const of = (text: string): Written => ({ text, given: {}, dates: {}, settings: {} });

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
	keepDraft(own, of("select 2"));
	keepDraft(insight, of("select 3"));
	keepDraft(insight, { ...of("select 4"), given: { n: 2n ** 60n }, settings: { display: "ActionsPie" } });
	expect(draftOf(insight)).toEqual({ ...of("select 4"), given: { n: 2n ** 60n }, settings: { display: "ActionsPie" } });
	expect([draftOf(own)?.text, draftOf(link)]).toEqual(["select 2", null]);
	dropDraft(insight);
	dropDraft(link);
	expect([draftOf(own), draftOf(insight)]).toEqual([of("select 2"), null]);
});

test("the oldest drafts go when there are many, or no room", () => {
	for (let i = 0; i < 30; i++) keepDraft(`link ${i}`, of("x".repeat(10)));
	expect([draftOf("link 9"), draftOf("link 10")]).toEqual([null, of("x".repeat(10))]);
	room = 1000;
	keepDraft("", of("y"));
	expect([draftOf(""), draftOf("link 29"), draftOf("link 10")]).toEqual([of("y"), of("x".repeat(10)), null]);
	room = 1;
	keepDraft("", of("z"));
	expect(draftOf("")).toEqual(of("y"));
});

test("what is not a list of drafts is none", () => {
	for (const text of ["{", "{}", "[1, null]", '[{"of": "", "text": "select 1"}]']) {
		kept.set("analytics.sql.drafts.0", text);
		expect(draftOf("")).toBe(null);
	}
});
