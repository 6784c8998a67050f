import { type ContainerNode, h, render } from "preact";
import { afterEach, expect, test, vi } from "vitest";
import type { Property } from "../src/editor/filters";

vi.setConfig({ testTimeout: 180_000 });
afterEach(() => vi.unstubAllGlobals());

/** The properties of the field for the property. */
let picker: { onValue: (property: Property) => void };

vi.mock("../src/editor/property-picker", () => ({
	PropertyPicker: (props: typeof picker) => {
		picker = props;
		return null;
	},
}));

/** As much of an element as rendering needs. */
const element = () => {
	const nothing = () => {};
	const parts = { nodeType: 1, childNodes: [], attributes: [], firstChild: null, querySelector: () => null };
	return { ...parts, setAttribute: nothing, removeAttribute: nothing, addEventListener: nothing, insertBefore: nothing };
};

test("a filter whose property is still looked up goes into the newest list", async () => {
	vi.stubGlobal("document", { createElementNS: element, createElement: element, createTextNode: element });
	vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => {} });
	let answer: ((response: Response) => void) | undefined;
	vi.stubGlobal("fetch", () => new Promise((resolve) => (answer = resolve)));
	const { AddFilter } = await import("../src/editor/filter-group");
	const { session } = await import("../src/session");
	session.value = { key: crypto.randomUUID(), label: "", scopes: ["*"], own: false, organization: "o", project: { id: 1, name: "" } };
	const page = element() as unknown as ContainerNode;
	const show = (onAdd: () => void) => render(h(AddFilter, { label: "Add filter", types: ["event"], onAdd, open: true }), page);
	const [before, now] = [vi.fn(), vi.fn()];
	show(before);
	picker.onValue({ type: "event", key: "paid" });
	show(now);
	answer?.(Response.json({ results: [{ name: "paid", property_type: "Boolean" }] }));
	await vi.waitFor(() => expect(before.mock.calls.length + now.mock.calls.length).toBe(1), { timeout: 60_000 });
	expect(now).toHaveBeenCalledWith(expect.objectContaining({ type: "event", key: "paid" }));
});
