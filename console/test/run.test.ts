import { type ContainerNode, h, render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

let run: ReturnType<typeof import("../src/pages/sql/run").useRun>;

/** The requests of queries that are not answered yet. */
let asked: { signal: AbortSignal; answer: (status: number, body: unknown) => void }[];

beforeEach(async () => {
	vi.resetModules();
	vi.stubGlobal("document", {});
	const storage = { getItem: () => null, setItem: () => {} };
	vi.stubGlobal("sessionStorage", storage);
	vi.stubGlobal("localStorage", storage);
	asked = [];
	vi.stubGlobal("fetch", (_: string, { method, signal }: { method: string; signal: AbortSignal }) => {
		if (method === "DELETE") return Promise.resolve(new Response(null, { status: 204 }));
		return new Promise((resolve, reject) => {
			signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
			asked.push({ signal, answer: (status, body) => resolve(new Response(JSON.stringify(body), { status })) });
		});
	});
	const page = await import("../src/pages/sql/run");
	function Page() {
		run = page.useRun();
		return null;
	}
	render(h(Page, {}), { nodeType: 1, childNodes: [], firstChild: null } as unknown as ContainerNode);
});

vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 });

afterEach(() => vi.unstubAllGlobals());

const soon = (check: () => void) => vi.waitFor(check, { timeout: 60_000 });

const query = { kind: "HogQLQuery", query: "select 1", modifiers: { personsOnEventsMode: "disabled" } };

test("a result and an error say of which query they are", async () => {
	run.start(query);
	await soon(() => expect(asked).toHaveLength(1));
	asked[0]?.answer(200, { results: [[1]] });
	await soon(() => expect(run).toMatchObject({ answer: { asked: query, data: { results: [[1]] } }, failure: undefined, since: null }));
	const wrong = { ...query, query: "select x" };
	run.start(wrong);
	await soon(() => expect(asked).toHaveLength(2));
	asked[1]?.answer(400, { detail: "Unable to resolve field: x" });
	await soon(() => expect(run).toMatchObject({ answer: undefined, failure: { asked: wrong }, since: null }));
});

test("what was run before another text is opened is gone, and its answer never comes", async () => {
	run.start(query);
	await soon(() => expect(asked).toHaveLength(1));
	asked[0]?.answer(200, { results: [[1]] });
	await soon(() => expect(run.answer).toBeDefined());
	run.start(query);
	await soon(() => expect(asked).toHaveLength(2));
	run.clear();
	await soon(() => expect(run).toMatchObject({ answer: undefined, failure: undefined, since: null }));
	expect(asked[1]?.signal.aborted).toBe(true);
});
