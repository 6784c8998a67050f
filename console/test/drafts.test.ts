import { beforeEach, expect, test, vi } from "vitest";
import { session } from "../src/session";
import { draftOf, dropDraft, keepDraft, nameOf, type Written } from "../src/sql/drafts";
import { history, note } from "../src/sql/history";

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

test("projects share no drafts and no history, and the keys of a project do", () => {
	const open = (organization: string, id: number) => {
		session.value = { key: crypto.randomUUID(), label: "", scopes: [], own: false, organization, project: { id, name: "" } };
	};
	vi.stubGlobal("localStorage", sessionStorage);
	open("a", 0); // a key without project:read
	keepDraft("", of("select 1"));
	note({ query: "select 2", at: 0 });
	open("a", 1);
	expect([draftOf("")?.text, history().map((run) => run.query)]).toEqual(["select 1", ["select 2"]]);
	open("b", 0);
	expect([draftOf(""), history()]).toEqual([null, []]);
	session.value = null;
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
		kept.set("analytics.sql.drafts.", text);
		expect(draftOf("")).toBe(null);
	}
});
