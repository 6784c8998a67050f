import { describe, expect, it } from "vitest";
import { cellText, inView } from "../src/ui/table";

describe("rows in view", () => {
	it("are few of many", () => {
		expect(inView(1000, 0, 340, 34, 8)).toEqual({ first: 0, last: 18 });
		expect(inView(1000, 3400, 340, 34, 8)).toEqual({ first: 92, last: 118 });
	});
	it("end with the list", () => {
		expect(inView(1000, 33_660, 340, 34, 8)).toEqual({ first: 982, last: 1000 });
		expect(inView(5, 0, 340, 34, 8)).toEqual({ first: 0, last: 5 });
		expect(inView(0, 0, 340, 34, 8)).toEqual({ first: 0, last: 0 });
	});
	it("are the last ones when the list got shorter", () => {
		expect(inView(3, 90_000, 340, 34, 8)).toEqual({ first: 0, last: 3 });
		expect(inView(100, 90_000, 340, 34, 8)).toEqual({ first: 92, last: 100 });
	});
});

describe("a value in a cell", () => {
	it("has a tooltip if it may be cut off, and only its beginning if it is long", () => {
		expect(cellText("visit")).toEqual({ shown: "visit" });
		const wide = '{"$current_url": "https://example.com/path"}';
		expect(cellText(wide)).toEqual({ shown: wide, title: wide });
		const cut = `${"x".repeat(500)}…`;
		expect(cellText("x".repeat(501))).toEqual({ shown: cut, title: cut });
	});
});
