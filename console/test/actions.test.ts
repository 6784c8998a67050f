import { describe, expect, it } from "vitest";
import { afterSave } from "../src/data/draft";
import { blankStep, describe as words, filtersOf, type Step } from "../src/pages/actions/steps";

const step = (changes: Partial<Step>): Step => ({ ...blankStep, ...changes });
const only = (changes: Partial<Step>) => (filtersOf([step(changes)])[0] as { values: { values: unknown[] }[] }).values[0]?.values;

describe("the filters of an action's steps", () => {
	it("are none where every event matches", () => {
		expect(filtersOf([])).toEqual([]);
		expect(filtersOf([blankStep])).toEqual([]);
		expect(filtersOf([step({ event: "a" }), blankStep])).toEqual([]);
	});
	it("combine steps by or, and what a step names by and", () => {
		expect(filtersOf([step({ event: "a" }), step({ event: "b", url: "/x", url_matching: "exact" })])).toEqual([
			{
				type: "OR",
				values: [
					{ type: "AND", values: [{ type: "hogql", key: "event = 'a'" }] },
					{
						type: "AND",
						values: [
							{ type: "hogql", key: "event = 'b'" },
							{ type: "hogql", key: "properties.$current_url = '/x'" },
						],
					},
				],
			},
		]);
	});
	it("quote what is typed", () => {
		expect(only({ event: "it's" })).toEqual([{ type: "hogql", key: "event = 'it\\'s'" }]);
	});
	it("compare URLs by case, and take wildcards", () => {
		expect(only({ url: "/a_b", url_matching: null })).toEqual([{ type: "hogql", key: "properties.$current_url like '%/a_b%'" }]);
		expect(only({ url: "^/a", url_matching: "regex" })).toEqual([{ type: "hogql", key: "properties.$current_url =~ '^/a'" }]);
	});
	it("ask for elements of clicks alone", () => {
		const click = { selector: "form > button", tag_name: "button", text: "Go", href: "/go" };
		expect(only({ event: "$pageview", ...click })).toEqual([{ type: "hogql", key: "event = '$pageview'" }]);
		expect(only({ event: "$autocapture", ...click })).toEqual([
			{ type: "hogql", key: "event = '$autocapture'" },
			{ type: "hogql", key: "elements_chain_href = '/go'" },
			{ type: "hogql", key: "arrayExists(one -> one = 'Go', elements_chain_texts)" },
			{ type: "element", key: "selector", operator: "exact", value: ["form > button"] },
			{ type: "element", key: "tag_name", operator: "exact", value: ["button"] },
		]);
	});
	it("keep the filters of the step", () => {
		const filter = { type: "event", key: "plan", operator: "exact", value: ["pro"] };
		expect(only({ properties: [filter] })).toEqual([filter]);
	});
});

describe("a step in words", () => {
	it("says what it asks for", () => {
		expect(words(blankStep)).toBe("Any event");
		expect(words(step({ event: "a", url: "/x" }))).toBe("a where URL contains “/x”");
		expect(words(step({ event: "$autocapture", text: "Go", properties: [{}] }))).toBe("$autocapture where text is “Go”, 1 filter");
	});
});

it("keeps what is changed while an action is saved", () => {
	const sent = { name: " a ", tags: "x", steps: [blankStep] };
	const saved = { name: "a", tags: "x", steps: [step({ properties: null })] };
	expect(afterSave(sent, sent, saved)).toEqual(saved);
	const steps = [blankStep, blankStep];
	expect(afterSave({ ...sent, steps }, sent, saved)).toEqual({ ...saved, steps });
});
