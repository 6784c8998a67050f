import { describe, expect, test } from "vitest";
import { ago, bytes, compact, duration, percent, text } from "../src/ui/format";

describe("format", () => {
	test.each([
		[0, "0 ms"],
		[0.0123, "12.3 ms"],
		[2.44, "2.4 s"],
		[200, "3m 20s"],
		[7500, "2h 5m"],
		[360000, "4d 4h"],
		[86400, "1d"],
	])("%f seconds are %s", (seconds, want) => expect(duration(seconds)).toBe(want));

	test.each([
		[0, "0 B"],
		[999, "999 B"],
		[3400, "3.4 kB"],
		[5_600_000, "5.6 MB"],
	])("%i bytes are %s", (size, want) => expect(bytes(size)).toBe(want));

	test("shares and large numbers are short", () => {
		expect(percent(0.1234)).toBe("12.3%");
		expect(compact(12345)).toBe("12.3K");
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
