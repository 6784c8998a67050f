import { describe, expect, test } from "vitest";
import { offered } from "../src/ui/combobox";

const values = [{ value: "enterprise-pro" }, { value: "pro" }, { value: "free" }];
const unseen = [
	{ value: "event signed up", label: "signed up" },
	{ value: "event signed", label: "signed", detail: "Not seen yet", unseen: true },
];
const seen = [
	{ value: "event signed up", label: "signed up" },
	{ value: "event signed", label: "signed" },
	{ value: "action 3", label: "signed", detail: "Action" },
];
const order = (list: { value: string }[]) => list.map((s) => s.value);

describe("the suggestions for a typed text", () => {
	test("begin with the one that was typed", () => {
		expect(order(offered(values, "pro", true))).toEqual(["pro", "enterprise-pro", "free"]);
		expect(order(offered(values, "free"))).toEqual(["free", "enterprise-pro", "pro"]);
	});
	test("begin with the text itself where it can be chosen as it is", () => {
		expect(offered(values, "pr", true)[0]).toEqual({ value: "pr", label: "“pr”" });
		expect(offered(values, "pr")).toBe(values);
	});
	test("begin with the first that reads like it, whatever its value is", () => {
		expect(order(offered(seen, "signed"))).toEqual(["event signed", "event signed up", "action 3"]);
		expect(order(offered([...unseen, ...seen.slice(2)], "signed"))).toEqual(["action 3", "event signed up", "event signed"]);
	});
	test("do not begin with what has not been seen", () => {
		expect(offered(unseen, "signed")).toBe(unseen);
	});
	test("stay in their order before anything is typed", () => {
		expect(offered(values, "", true)).toBe(values);
	});
});
