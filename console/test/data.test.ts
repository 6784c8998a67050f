import { describe, expect, it } from "vitest";
import { bounded } from "./bounded";
import { parseElements, tagOf } from "../src/data/elements";
import { isUUID, quoted, quotedTime } from "../src/data/hogql";
import { clock, micros, startOfDay } from "../src/data/time";
import { sortProperties, typeOf } from "../src/data/value";

describe("constants of HogQL", () => {
	it("escapes quotes and backslashes", () => {
		expect(quoted(`it's a \\ "test"`)).toBe(`'it\\'s a \\\\ "test"'`);
		expect(quoted("' or 1 = 1 --")).toBe("'\\' or 1 = 1 --'");
	});
	it("keeps microseconds", () => {
		expect(quotedTime(micros("2026-11-23T07:34:46.375036Z"))).toBe("toDateTime64('2026-11-23 07:34:46.375036', 6, 'UTC')");
		expect(quotedTime(micros("2026-11-23T07:34:46Z"))).toBe("toDateTime64('2026-11-23 07:34:46.000000', 6, 'UTC')");
	});
	it("knows UUIDs", () => {
		expect(isUUID("36e56d12-d19f-1c2b-acc4-edc3d85d8eeb")).toBe(true);
		expect(isUUID("36e56d12-d19f-1c2b-acc4-edc3d85d8eeb' or 1")).toBe(false);
	});
});

describe("times", () => {
	it("reads as many digits as there are", () => {
		expect(micros("2026-11-23T07:34:46.5Z") - micros("2026-11-23T07:34:46Z")).toBe(500_000);
		expect(micros("2026-11-23T07:34:46.000001Z") - micros("2026-11-23T07:34:46Z")).toBe(1);
	});
	it("is shown in the project's zone", () => {
		expect(clock("2026-05-03T22:05:09Z", "Europe/Berlin")).toBe("2026-05-04 00:05:09");
		expect(clock("no time", "UTC")).toBe("no time");
	});

	it.each([
		["2026-06-30", "UTC", "2026-06-30T00:00:00Z"],
		["2026-06-30", "America/New_York", "2026-06-30T04:00:00Z"],
		["2026-03-08", "America/New_York", "2026-03-08T05:00:00Z"], // clocks change later in the day
		["2026-03-09", "America/New_York", "2026-03-09T04:00:00Z"],
		["2026-06-30", "Asia/Kathmandu", "2026-06-29T18:15:00Z"],
		["2026-06-30", "Pacific/Kiritimati", "2026-06-29T10:00:00Z"],
		["2026-04-24", "Africa/Cairo", "2026-04-23T22:00:00Z"], // from 00:00 to 01:00
		["2026-09-06", "America/Santiago", "2026-09-06T04:00:00Z"], // the same west of Greenwich
		["2026-11-01", "America/Havana", "2026-11-01T04:00:00Z"], // from 01:00 back to 00:00
	])("%s begins in %s at %s", (day, zone, want) => expect(startOfDay(day, zone)).toBe(want));
});

describe("values", () => {
	it("have types", () => {
		expect([null, undefined, "", 0, false, [], {}].map(typeOf)).toEqual(["none", "none", "text", "number", "boolean", "list", "object"]);
	});
	it("are sorted and searched by name and value", () => {
		const properties = { $browser: "Chrome", plan: "pro", count: 3, nested: { key: "needle" } };
		expect(sortProperties(properties).map(([name]) => name)).toEqual(["count", "nested", "plan", "$browser"]);
		expect(sortProperties(properties, "NEEDLE").map(([name]) => name)).toEqual(["nested"]);
		expect(sortProperties(properties, "chrome").map(([name]) => name)).toEqual(["$browser"]);
		expect(sortProperties(properties, "3").map(([name]) => name)).toEqual(["count"]);
	});
});

describe("chains of elements", () => {
	it("are read from the inside to the outside", () => {
		const chain = 'button.large.blue:attr__id="order"nth-child="1"nth-of-type="1"text="Order; now \\"today\\"";form:nth-child="2";body';
		const [button, form, body] = parseElements(chain);
		expect(button).toEqual({
			tag: "button",
			classes: ["large", "blue"],
			text: 'Order; now "today"',
			attributes: [
				["id", "order"],
				["nth-child", "1"],
				["nth-of-type", "1"],
			],
		});
		expect(form?.tag).toBe("form");
		expect(body).toEqual({ tag: "body", classes: [], attributes: [] });
		expect(button && tagOf(button)).toBe('<button class="large blue" id="order">');
	});
	it("may be empty", () => {
		expect(parseElements("")).toEqual([]);
	});
	it("have at most 500 elements", () => {
		expect(parseElements("a;;b;")).toHaveLength(2);
		expect(parseElements("a;".repeat(1000))).toHaveLength(500);
	});
	it("take no time that grows faster than their length", () => {
		const chains = [`a:${"b".repeat(1_000_000)}`, `"${'\\"'.repeat(500_000)}`, `a:${'"='.repeat(500_000)}`, `a:${'b="'.repeat(300_000)}`];
		for (const chain of chains) expect(bounded(() => parseElements(chain).map(tagOf).length)).toBe(1);
	});
	it("survive what is no chain", () => {
		for (const text of [";;;", '":"="', "a:b", 'a:b="', "\\", ':"x"="y"']) expect(() => parseElements(text).map(tagOf)).not.toThrow();
	});
});
