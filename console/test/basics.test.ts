import { expect, test } from "vitest";
import { stepped, TextInput } from "../src/ui/basics";

test.each([
	["ArrowRight", 0, 1],
	["ArrowRight", 2, 0],
	["ArrowRight", -1, 0],
	["ArrowLeft", 2, 1],
	["ArrowLeft", 0, 2],
	["ArrowLeft", -1, 2],
	["Home", 1, 0],
	["End", 0, 2],
	["ArrowDown", 0, null],
	["a", 0, null],
])("%s goes from %i of three to %j", (key, at, want) => expect(stepped(key, "ArrowLeft", "ArrowRight", at, 3)).toBe(want));

test.each([
	["Growth", true, ""],
	["", true, ""], // the browser has its own words for it
	["  ", true, "Please enter more than spaces."],
	["\u00a0\t", true, "Please enter more than spaces."],
	["  ", false, ""],
])("a field with %j that is required: %j", (value, required, want) => {
	const field = TextInput({ value, required, onValue: () => {} });
	let said: string | undefined;
	if (typeof field.ref === "function") field.ref({ setCustomValidity: (text: string) => (said = text) });
	expect(said).toBe(want);
});
