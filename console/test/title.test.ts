import { Fragment, h } from "preact";
import { describe, expect, test } from "vitest";
import { documentTitle, plainText } from "../src/ui/title";

describe("the title of the document", () => {
	test.each([
		["Daily visitors", "Insights", "Daily visitors · Insights · Analytics"],
		["Insights", "Insights", "Insights · Analytics"],
		["", "Insights", "Insights · Analytics"],
		["Sign in", "", "Sign in · Analytics"],
		["", "", "Analytics"],
	])("of %j in %j is %j", (text, section, want) => expect(documentTitle(text, section)).toBe(want));
});

describe("the text of a heading", () => {
	test.each([
		["a text", "Insights", "Insights"],
		["a name with a badge", h(Fragment, null, "Visits", " ", h("span", null, "Unsaved changes")), "Visits"],
		["a name of several parts", h(Fragment, null, "Action ", 7, " ", false), "Action 7"],
		["a name that looks like HTML", "<b>bold</b>", "<b>bold</b>"],
		["an icon", h("svg", null), ""],
		["nothing", null, ""],
	])("%s", (_, of, want) => expect(plainText(of)).toBe(want));
});
