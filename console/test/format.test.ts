import { describe, expect, test } from "vitest";
import { ago, bytes, compact, counted, duration, percent, text } from "../src/ui/format";

describe("format", () => {
	test.each([
		[0, "0 ms"],
		[0.0123, "12.3 ms"],
		[0.99994, "999.9 ms"],
		[0.99996, "1 s"],
		[2.44, "2.4 s"],
		[59.94, "59.9 s"],
		[59.96, "1m"],
		[119.9, "1m 59s"],
		[200, "3m 20s"],
		[7500, "2h 5m"],
		[360000, "4d 4h"],
		[86400, "1d"],
	])("%f seconds are %s", (seconds, want) => expect(duration(seconds)).toBe(want));

	test.each([
		[0, "0 B"],
		[999, "999 B"],
		[3400, "3.4 kB"],
		[999_949, "999.9 kB"],
		[999_999, "1 MB"],
		[5_600_000, "5.6 MB"],
	])("%i bytes are %s", (size, want) => expect(bytes(size)).toBe(want));

	test("shares and large numbers are short", () => {
		expect(percent(0.1234)).toBe("12.3%");
		expect(compact(12345)).toBe("12.3K");
	});

	test("what is counted is in the singular or the plural", () => {
		expect(counted(1, "event")).toBe("1 event");
		expect(counted(0, "event")).toBe("0 events");
		expect(counted(1200, "event")).toBe("1,200 events");
		expect(counted(1, "person", "people")).toBe("1 person");
		expect(counted(2, "person", "people")).toBe("2 people");
	});

	test("times are told from now", () => {
		const now = Date.parse("2026-03-04T12:00:00Z");
		expect(ago("2026-03-04T09:00:00Z", now)).toBe("3h ago");
		expect(ago("2026-03-04T11:59:58Z", now)).toBe("now");
		expect(ago(null, now)).toBe("never");
		expect(ago("no time", now)).toBe("no time");
	});

	test("any value is a text", () => {
		expect([text(null), text("a"), text(1), text({ a: [1] })]).toEqual(["", "a", "1", '{"a":[1]}']);
	});
});
