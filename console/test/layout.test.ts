import { describe, expect, test } from "vitest";
import { changed, edgeSpeed, inOrder, nudged, type Placed, placesOf, withBox } from "../src/pages/dashboards/layout";

const at = (id: number, x: number, y: number, w = 6, h = 5): Placed => ({ id, x, y, w, h });
const places = (all: Placed[]) => Object.fromEntries(all.map(({ id, x, y, w, h }) => [id, [x, y, w, h]]));

describe("placesOf", () => {
	test("keeps places, and puts the others below, two in a row", () => {
		const tiles = [{ id: 1, layouts: { sm: { x: 0, y: 0, w: 12, h: 3 } } }, { id: 2 }, { id: 3, layouts: {} }, { id: 4, layouts: null }];
		expect(places(placesOf(tiles))).toEqual({ 1: [0, 0, 12, 3], 2: [0, 3, 6, 5], 3: [6, 3, 6, 5], 4: [0, 8, 6, 5] });
	});
	test("moves tiles apart that overlap, and into the grid", () => {
		const tiles = [
			{ id: 1, layouts: { sm: { x: 0, y: 0, w: 6, h: 5 } } },
			{ id: 2, layouts: { sm: { x: 3, y: 2, w: 6, h: 5 } } },
			{ id: 3, layouts: { sm: { x: 11, y: -4, w: 99, h: 900 } } },
		];
		expect(places(placesOf(tiles))).toEqual({ 1: [0, 0, 6, 5], 3: [0, 5, 12, 24], 2: [3, 29, 6, 5] });
	});
	test("takes half a place for none", () => {
		expect(places(placesOf([{ id: 1, layouts: { sm: { x: 3, y: 2 } } }]))).toEqual({ 1: [0, 0, 6, 5] });
	});
});

describe("moving", () => {
	const grid = [at(1, 0, 0), at(2, 6, 0), at(3, 0, 5), at(4, 6, 5)];
	test("up over the half of another, they change places", () => {
		expect(places(withBox(grid, 3, { y: 2 }))).toEqual({ 1: [0, 5, 6, 5], 2: [6, 0, 6, 5], 3: [0, 0, 6, 5], 4: [6, 5, 6, 5] });
		expect(places(withBox(grid, 3, { y: 4 }))).toEqual(places(grid));
	});
	test("down over the half of another, they change places", () => {
		expect(places(withBox(grid, 1, { y: 3 }))).toEqual({ 3: [0, 0, 6, 5], 1: [0, 5, 6, 5], 2: [6, 0, 6, 5], 4: [6, 5, 6, 5] });
		expect(places(withBox(grid, 1, { y: 1 }))).toEqual(places(grid));
	});
	test("what is in the way goes down, and tiles go up where there is room", () => {
		expect(places(withBox(grid, 1, { w: 12 }))).toEqual({ 1: [0, 0, 12, 5], 2: [6, 5, 6, 5], 3: [0, 5, 6, 5], 4: [6, 10, 6, 5] });
		expect(places(withBox(grid, 1, { h: 2 }))).toEqual({ 1: [0, 0, 6, 2], 2: [6, 0, 6, 5], 3: [0, 2, 6, 5], 4: [6, 5, 6, 5] });
	});
	test("by keys, each step up or down has an effect", () => {
		expect(places(nudged(grid, 3, 0, -1))).toMatchObject({ 3: [0, 0, 6, 5], 1: [0, 5, 6, 5] });
		expect(places(nudged(grid, 1, 0, 1))).toMatchObject({ 3: [0, 0, 6, 5], 1: [0, 5, 6, 5] });
		expect(places(nudged(grid, 4, 0, 1))).toEqual(places(grid));
		expect(places(nudged([at(1, 0, 0)], 1, 1, 0))).toEqual({ 1: [1, 0, 6, 5] });
	});
	test("nothing overlaps, whatever is moved", () => {
		let all = grid;
		let seed = 1;
		const next = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
		for (let i = 0; i < 500; i++) {
			all = withBox(all, 1 + next(4), { x: next(14) - 1, y: next(20) - 1, w: next(14), h: next(9) });
			for (const a of all) {
				expect(a.x + a.w).toBeLessThanOrEqual(12);
				for (const b of all) {
					if (a.id < b.id) expect(a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h).toBe(false);
				}
			}
		}
	});
});

test("inOrder reads from the top and the left; changed names what differs", () => {
	expect(inOrder([at(1, 6, 0), at(2, 0, 5), at(3, 0, 0)]).map((p) => p.id)).toEqual([3, 1, 2]);
	expect(changed([at(1, 0, 0), at(2, 6, 0)], [at(1, 0, 0), at(2, 6, 1), at(3, 0, 5)]).map((p) => p.id)).toEqual([2, 3]);
});

test.each([
	[400, 800, 0],
	[80, 800, 0],
	[720, 800, 0],
	[40, 800, -600],
	[760, 800, 600],
	[800, 800, 1200],
	[900, 800, 1200], // the pointer is below the window
	[-50, 800, -1200],
	[50, 100, 0], // a low window
	[100, 100, 1200],
])("a tile that is dragged at %i of %i scrolls by %i", (y, height, want) => expect(edgeSpeed(y, height)).toBe(want));
