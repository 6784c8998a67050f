import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { entities, forgetTypes, groupTypes, properties, propertyType } from "../src/editor/suggest";
import { offered } from "../src/ui/combobox";
import { session } from "../src/session";

const companies = { group_type_index: 0, group_type: "company" };

beforeEach(() => {
	session.value = { key: crypto.randomUUID(), label: "", scopes: ["*"], own: false, organization: "o", project: { id: 1, name: "" } };
});
afterEach(() => {
	session.value = null;
	vi.unstubAllGlobals();
});

/** Answers requests: the first with an error, the others with a body. */
function failsOnce(body: unknown) {
	const asked = vi.fn(async () => Response.json(body));
	asked.mockImplementationOnce(async () => Response.json({ detail: "Not now." }, { status: 503 }));
	vi.stubGlobal("fetch", asked);
	return asked;
}

describe("look-ups that are kept", () => {
	it("asks for types of groups again after an error, and then no more", async () => {
		const asked = failsOnce([companies]);
		expect([await groupTypes(), await groupTypes(), await groupTypes()]).toEqual([[], [companies], [companies]]);
		expect(asked).toHaveBeenCalledTimes(2);
	});
	it("does not ask for types of groups without the scope", async () => {
		const asked = failsOnce([companies]);
		if (session.value) session.value = { ...session.value, scopes: ["query:read"] };
		expect(await groupTypes()).toEqual([]);
		expect(asked).not.toHaveBeenCalled();
	});
	it("asks for the type of a property again after an error, and then no more", async () => {
		const asked = failsOnce({ results: [{ name: "paid", property_type: "Boolean" }] });
		const paid = { type: "event", key: "paid" } as const;
		expect([await propertyType(paid), await propertyType(paid), await propertyType(paid)]).toEqual([null, "Boolean", "Boolean"]);
		expect(asked).toHaveBeenCalledTimes(2);
	});
	it("asks for the type of a property again once it was declared anew", async () => {
		const types = ["String", "Numeric"];
		vi.stubGlobal("fetch", async () => Response.json({ results: [{ name: "paid", property_type: types.shift() }] }));
		const paid = { type: "event", key: "paid" } as const;
		expect(await propertyType(paid)).toBe("String");
		forgetTypes();
		expect(await propertyType(paid)).toBe("Numeric");
	});
});

describe("what was typed in full comes first", () => {
	const answers = (results: unknown[]) => vi.stubGlobal("fetch", async () => Response.json({ results }));
	const { signal } = new AbortController();
	it("of events that have been seen", async () => {
		answers([{ name: "signed up" }, { name: "signed" }]);
		const found = await entities("signed", { actions: false, everything: false }, signal);
		expect(offered(found, "signed")[0]?.label).toBe("signed");
		expect(offered(found, "up")).toBe(found);
	});
	it("of properties, but not one that has not been seen", async () => {
		answers([{ name: "plan name", property_type: "String" }]);
		const find = (text: string) => properties(text, { types: ["event", "hogql"] }, signal);
		const found = await find("plan");
		expect(found.map((s) => s.detail)).toEqual(["Event · string", "Event · not seen yet", "SQL expression"]);
		expect(offered(found, "plan")).toBe(found);
		expect(offered(await find("plan name"), "plan name")[0]?.detail).toBe("Event · string");
	});
	it("of events, but not one that has not been seen", async () => {
		answers([{ name: "signed up" }]);
		const found = await entities("signed", { actions: false, everything: false }, signal);
		expect(found.map((s) => s.detail)).toEqual([undefined, "Not seen yet"]);
		expect(offered(found, "signed")).toBe(found);
	});
});
