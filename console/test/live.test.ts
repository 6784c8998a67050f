import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api/client";
import type { EventRow } from "../src/data/events";
import { micros } from "../src/data/time";
import { add, canRetry, isNew, most, nothing, pace, since, type Tail, waitAfter } from "../src/pages/live/tail";

const start = Date.parse("2026-05-03T12:00:00Z");
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();

function row(n: number, arrived: number, more: Partial<EventRow> = {}): EventRow {
	const uuid = `00000000-0000-0000-0000-${String(n).padStart(12, "0")}`;
	return {
		uuid,
		event: "e",
		distinctID: "d",
		personID: null,
		timestamp: at(arrived),
		arrived: at(arrived),
		url: null,
		screen: null,
		...more,
	};
}

const fresh = (tail: Tail) => tail.rows.filter((r) => isNew(tail, r)).map((r) => Number(r.uuid.slice(-12)));
const uuids = (tail: { rows: readonly EventRow[] }) => tail.rows.map((r) => Number(r.uuid.slice(-12)));

describe("a tail", () => {
	it("adds each event once, the newest first", () => {
		let tail = add(nothing, [row(2, 2), row(1, 1)], at(3));
		expect(uuids(tail)).toEqual([2, 1]);
		expect(fresh(tail)).toEqual([]); // those of the first poll are not new
		tail = add(tail, [row(3, 4), row(2, 2), row(1, 1)], at(5));
		expect(uuids(tail)).toEqual([3, 2, 1]);
		expect(tail.received).toBe(1);
		expect(fresh(tail)).toEqual([3]);
		tail = add(tail, [row(3, 4), row(2, 2)], at(7));
		expect(uuids(tail)).toEqual([3, 2, 1]);
		expect(fresh(tail)).toEqual([3]);
		tail = add(add(tail, [], at(9)), [row(3, 4)], at(11));
		expect(fresh(tail)).toEqual([]); // it was new for three polls
		expect(tail.received).toBe(1);
	});
	it("puts an event that became visible late into its place", () => {
		let tail = add(nothing, [row(3, 3), row(1, 1)], at(3));
		tail = add(tail, [row(3, 3), row(2, 2), row(1, 1)], at(5));
		expect(uuids(tail)).toEqual([3, 2, 1]);
		expect(fresh(tail)).toEqual([2]);
	});
	it("orders by arrival, not by the time that clients sent", () => {
		const tail = add(nothing, [row(1, 1, { timestamp: at(900) }), row(2, 2, { timestamp: at(-900) })], at(3));
		expect(uuids(tail)).toEqual([2, 1]);
	});
	it("tells apart events that share a uuid", () => {
		const tail = add(nothing, [row(1, 1), row(1, 1, { event: "other" }), row(1, 1)], at(3));
		expect(tail.rows.length).toBe(2);
	});
	it("keeps microseconds apart", () => {
		const early = row(1, 0, { arrived: "2026-05-03T12:00:00.1Z" });
		const late = row(2, 0, { arrived: "2026-05-03T12:00:00.100001Z" });
		expect(uuids(add(nothing, [early, late], at(1)))).toEqual([2, 1]);
	});
	it("keeps only the newest", () => {
		const many = Array.from({ length: most }, (_, i) => row(i, 0));
		let tail = add(nothing, many, at(1));
		expect(tail.rows.length).toBe(most);
		tail = add(tail, [row(5000, 2), ...many], at(3));
		expect(tail.rows.length).toBe(most);
		expect(uuids(tail)[0]).toBe(5000);
		expect(tail.received).toBe(1);
		const gone = many.filter((r) => !tail.rows.some((kept) => kept.uuid === r.uuid));
		tail = add(tail, gone, at(5)); // asked again, it does not come back
		expect(uuids(tail)).not.toContain(Number(gone[0]?.uuid.slice(-12)));
		expect(tail.received).toBe(1);
	});
});

describe("what the next poll asks for", () => {
	it("is the newest of all at first", () => {
		expect(since(nothing)).toBeNull();
	});
	it("overlaps with what was received, by the server's clock", () => {
		const tail = { ...add(nothing, [row(1, 1)], at(100)), polls: 1 };
		expect(since(tail)).toBe(micros(at(70)));
	});
	it("looks further back now and then", () => {
		const tail = { ...add(nothing, [row(1, 1)], at(2000)), polls: 15 };
		expect(since(tail)).toBe(micros(at(1100)));
	});
	it("does not go back beyond the oldest that is held", () => {
		const tail = {
			...add(
				nothing,
				Array.from({ length: most }, (_, i) => row(i, 95)),
				at(100),
			),
			polls: 15,
		};
		expect(since(tail)).toBe(micros(at(95)));
	});
	it("does not depend on the arrival of the newest event", () => {
		const empty = add(nothing, [], at(100));
		expect(since({ ...empty, polls: 1 })).toBe(micros(at(70)));
	});
});

describe("after a failure", () => {
	it("waits as long as the server says", () => {
		expect(waitAfter(new ApiError(429, "throttled", "", null, {}, 12), 1)).toBe(12_000);
		expect(waitAfter(new ApiError(429, "throttled", "", null, {}, 0), 1)).toBe(pace);
	});
	it("waits longer and longer, up to a minute", () => {
		const gone = new ApiError(0, "unreachable", "");
		expect([1, 2, 3, 10].map((n) => waitAfter(gone, n))).toEqual([4000, 8000, 16_000, 60_000]);
	});
	it("gives up on what stays wrong", () => {
		expect(canRetry(new ApiError(400, "invalid", ""))).toBe(false);
		expect(canRetry(new ApiError(403, "permission_denied", ""))).toBe(false);
		expect([0, 429, 503].map((status) => canRetry(new ApiError(status, "", "")))).toEqual([true, true, true]);
	});
});
