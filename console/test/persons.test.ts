import { expect, test } from "vitest";
import { type Deletion, stateOf, whatOf } from "../src/pages/persons/progress";
import { type Kind, valueOf, writtenAs } from "../src/pages/persons/values";

test("a value comes out of a form as it went in", () => {
	for (const value of ["", "12", "true", "naïve ☕", 0, -1.5, 1e21, true, false, [], ["a", 1], { city: "Ghent", at: { x: null } }]) {
		const { kind, text } = writtenAs(value);
		expect(valueOf(kind, text)).toEqual(value);
	}
});

test.each<[Kind, string, string]>([
	["number", "", "Write a number, such as 12 or 0.5."],
	["number", "  ", "Write a number, such as 12 or 0.5."],
	["number", "12 €", "Write a number, such as 12 or 0.5."],
	["number", "Infinity", "Write a number, such as 12 or 0.5."],
	["json", "{city: Ghent}", 'Write JSON, such as ["a", "b"] or {"city": "Ghent"}.'],
	["json", "", 'Write JSON, such as ["a", "b"] or {"city": "Ghent"}.'],
	["json", "null", "A property can’t be null. Delete it instead."],
])("a %s %j is refused", (kind, text, message) => {
	expect(() => valueOf(kind, text)).toThrow(message);
});

const asked: Deletion = {
	id: "d",
	person_uuid: "01900000-0000-7000-8000-000000000001",
	status: "pending",
	created_at: "2026-01-01T00:00:00Z",
	hidden_at: null,
	delete_verified_at: null,
	person_deleted: true,
	events_deleted: false,
	distinct_ids: 1,
	event_count: 0,
};

test("deletions are described", () => {
	expect(whatOf(asked)).toBe("Person");
	expect(whatOf({ ...asked, events_deleted: true })).toBe("Person and events");
	expect(whatOf({ ...asked, events_deleted: true, person_deleted: false })).toBe("Events");
	expect(stateOf(asked).words).toBe("Being hidden");
	expect(stateOf({ ...asked, hidden_at: asked.created_at }).words).toBe("Hidden, on disk until it is erased");
	expect(stateOf({ ...asked, hidden_at: asked.created_at, status: "completed" })).toEqual({ tone: "good", words: "Erased" });
});
