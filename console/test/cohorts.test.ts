import { describe, expect, it } from "vitest";
import { criteriaOf, csvOf, kindOf, kinds, newLeaf, tidied, withMember } from "../src/pages/cohorts/criteria";

describe("criteria", () => {
	it("are read from a record", () => {
		const group = { type: "OR", values: [{ type: "person", key: "a", operator: "is_set" }] };
		expect(criteriaOf({ properties: group })).toEqual(group);
		expect(criteriaOf({ properties: group.values[0] })).toEqual({ type: "AND", values: group.values });
		expect(criteriaOf(null)).toEqual({ type: "AND", values: [] });
		expect(criteriaOf({ properties: {} })).toEqual({ type: "AND", values: [] });
	});
	it("have a kind each", () => {
		for (const { value } of kinds) expect(kindOf(newLeaf(value))).toBe(value);
		expect(kindOf({ type: "behavioral", value: "something_new" })).toBeNull();
	});
	it("have what their kind needs", () => {
		expect(newLeaf("performed_event_sequence")).toEqual({
			type: "behavioral",
			value: "performed_event_sequence",
			key: "",
			event_type: "events",
			time_value: 30,
			time_interval: "day",
			seq_time_value: 7,
			seq_time_interval: "day",
			seq_event: "",
			seq_event_type: "events",
		});
		expect(newLeaf("performed_event_regularly")).toMatchObject({ operator: "gte", operator_value: 3, min_periods: 3, total_periods: 4 });
		expect(newLeaf("performed_event")).not.toHaveProperty("seq_time_value");
	});
	it("keep the event, the time and the negation when the kind changes", () => {
		const old = { ...newLeaf("performed_event"), key: "5", event_type: "actions", time_value: 9, negation: true };
		expect(newLeaf("performed_event_multiple", old)).toMatchObject({ key: "5", event_type: "actions", time_value: 9, negation: true });
		expect(newLeaf("person", old)).toEqual({ type: "person", key: "", operator: "exact", value: [], negation: true });
	});
	it("drop dates where the kind has none", () => {
		const old = { ...newLeaf("performed_event"), explicit_datetime: "-30d", explicit_datetime_to: "-1d" };
		expect(newLeaf("performed_event_multiple", old)).toMatchObject({ explicit_datetime: "-30d", explicit_datetime_to: "-1d" });
		expect(newLeaf("restarted_performing_event", old)).not.toHaveProperty("explicit_datetime");
	});
	it("are changed without changing what was there", () => {
		const group = criteriaOf({ properties: { type: "AND", values: [newLeaf("person"), newLeaf("cohort")] } });
		expect(withMember(group, 0, undefined).values).toEqual([newLeaf("cohort")]);
		expect(withMember(group, 1, newLeaf("person")).values).toEqual([newLeaf("person"), newLeaf("person")]);
		expect(group.values.length).toBe(2);
	});
	it("lose empty groups", () => {
		const leaf = newLeaf("person");
		const group = { type: "AND" as const, values: [leaf, { type: "OR" as const, values: [{ type: "AND" as const, values: [] }] }] };
		expect(tidied(group)).toEqual({ type: "AND", values: [leaf] });
		expect(tidied({ type: "AND", values: [] })).toBeNull();
	});
});

describe("a list of people as a file", () => {
	it("has a heading and quotes its cells", () => {
		expect(csvOf("distinct_id", 'ann\r\n\n  bob,jr \nsay "hi"')).toBe('"distinct_id"\n"ann"\n"bob,jr"\n"say ""hi"""');
	});
});
