import { expect, test } from "vitest";
import { addressOf, type Import, readMap, stateOf } from "../src/pages/imports/api";

test("the address of an import has what is asked", () => {
	expect(addressOf({ filename: "a b.csv", format: "csv", map: " when = timestamp \n\nwho=distinct_id", dryRun: true })).toBe(
		"imports/?filename=a+b.csv&format=csv&dry_run=true&map=when+%3D+timestamp&map=who%3Ddistinct_id",
	);
	expect(addressOf({ filename: "a", format: "", map: "", dryRun: false })).toBe("imports/?filename=a");
});

test.each(["when", "=timestamp", "when="])("the column %j is refused", (line) => {
	expect(() => readMap(`who=distinct_id\n${line}`)).toThrow(`Write column=field, not “${line}”.`);
});

test("imports are described", () => {
	const one = { status: "completed", report: { bad: 0 } } as Import;
	expect(stateOf(one)).toEqual({ tone: "good", words: "Completed" });
	expect(stateOf({ ...one, report: { bad: 2 } } as Import).words).toBe("Completed, with bad lines");
	expect(stateOf({ ...one, status: "failed" }).tone).toBe("bad");
});
