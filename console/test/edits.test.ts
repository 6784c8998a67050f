import { type ContainerNode, h, render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { changedFields, type Edits, useEdits } from "../src/data/draft";

interface Form {
	rate: string;
	active: boolean;
}

let edits: Edits<Form, Form>;

const draft = { useEdits }; // a component that calls it by its name alone could not hand it out
function Page() {
	edits = draft.useEdits((record: Form) => ({ ...record }));
	return null;
}

beforeEach(() => {
	vi.stubGlobal("document", {});
	render(h(Page, {}), { nodeType: 1, childNodes: [], firstChild: null } as unknown as ContainerNode);
});

afterEach(() => vi.unstubAllGlobals());

const soon = (check: () => void) => vi.waitFor(check, { timeout: 60_000 });
vi.setConfig({ testTimeout: 180_000 });

const loaded = { rate: "", active: true };

test("what was typed stays when the record is loaded again, and the rest is the record's", async () => {
	edits.edit(1, loaded, { ...edits.of(1, loaded), rate: "60/m" });
	await soon(() => expect(edits.of(1, loaded)).toEqual({ rate: "60/m", active: true }));
	expect(edits.of(1, { rate: "5/m", active: false })).toEqual({ rate: "60/m", active: false });
	expect(edits.of(2, loaded)).toEqual(loaded);
});

test("what was typed since it was sent stays, and the rest is what the record was made of it", async () => {
	const sent = { rate: " 60/m", active: false };
	edits.edit(1, loaded, sent);
	await soon(() => expect(edits.of(1, loaded)).toEqual(sent));
	edits.edit(1, loaded, { ...sent, active: true });
	await soon(() => expect(edits.of(1, loaded)).toEqual({ ...sent, active: true }));
	edits.saved(1, sent);
	edits.saved(2, sent);
	const saved = { rate: "60/m", active: false };
	await soon(() => expect(edits.of(1, saved)).toEqual({ rate: "60/m", active: true }));
	expect(edits.of(2, saved)).toEqual(saved);
});

test("what is sent of a form are the fields that differ from what it began with", () => {
	const began = { tags: ["a"], active: true, rate: null as string | null, big: 9007199254740993n };
	expect(changedFields({ ...began, tags: ["a"] }, began)).toEqual({});
	expect(changedFields({ ...began, tags: ["a", "b"], rate: "60/m" }, began)).toEqual({ tags: ["a", "b"], rate: "60/m" });
	expect(changedFields({ ...began, active: false }, began)).toEqual({ active: false });
});
