/** How many columns the grid of a dashboard has. */
export const gridColumns = 12;

/** The place of a tile in the grid, in columns and rows. */
export interface Box {
	x: number;
	y: number;
	w: number;
	h: number;
}

/** A tile with its place. */
export interface Placed extends Box {
	id: number;
}

/** The least size of a tile. */
const leastWidth = 2;
const leastHeight = 2;

/** The most rows of one tile, so that a mistake with the mouse can be seen and mended. */
const mostHeight = 24;

/** The size of a tile that has no place yet. */
const usual = { w: 6, h: 5 };

interface HasLayouts {
	id: number;
	layouts?: { sm?: Partial<Box> } | null;
}

/** The places of tiles: those that they have, moved where two would overlap; the others come below, two in a row. */
export function placesOf(tiles: readonly HasLayouts[]): Placed[] {
	const placed: Placed[] = [];
	const loose: Placed[] = [];
	for (const tile of tiles) {
		const at = tile.layouts?.sm;
		const whole = at && [at.x, at.y, at.w, at.h].every((n) => typeof n === "number" && Number.isFinite(n));
		if (whole) placed.push(inGrid({ id: tile.id, ...(at as Box) }));
		else loose.push({ id: tile.id, x: 0, y: 0, ...usual });
	}
	const fixed = compact(placed);
	let next = bottom(fixed);
	for (const [i, tile] of loose.entries()) {
		fixed.push({ ...tile, x: (i % 2) * usual.w, y: next });
		if (i % 2 === 1) next += usual.h;
	}
	return fixed;
}

/** Moves or resizes a tile. Those in its way go down, and all go up as far as they can. */
export function withBox(all: readonly Placed[], id: number, change: Partial<Box>): Placed[] {
	const old = all.find((p) => p.id === id);
	if (!old) return [...all];
	const moved = inGrid({ ...old, ...change });
	const others = all.filter((p) => p.id !== id);
	return compact([{ ...moved, y: turned(old, moved, others) }, ...others], id);
}

/** The row for a tile that is moved up or down over others: it goes before or behind those of which it covers the half. */
function turned(old: Placed, moved: Placed, others: readonly Placed[]): number {
	const around = others.filter((p) => p.x < moved.x + moved.w && moved.x < p.x + p.w);
	const half = (p: Placed) => p.y + p.h / 2;
	if (moved.y < old.y) return Math.min(moved.y, ...around.filter((p) => half(p) > moved.y).map((p) => p.y));
	if (moved.y === old.y) return moved.y;
	const passed = around.filter((p) => p.y >= old.y && half(p) < moved.y + moved.h);
	return Math.max(old.y, ...passed.map((p) => p.y + 0.5));
}

/** Moves a tile by columns and rows. Up or down it changes places with what is there, so that each step has an effect. */
export function nudged(all: readonly Placed[], id: number, dx: number, dy: number): Placed[] {
	const tile = all.find((p) => p.id === id);
	if (!tile) return [...all];
	if (dy === 0) return withBox(all, id, { x: tile.x + dx });
	const columns = all.filter((p) => p.id !== id && p.x < tile.x + tile.w && tile.x < p.x + p.w);
	if (dy < 0) {
		const above = columns.filter((p) => p.y + p.h <= tile.y).sort((a, b) => b.y + b.h - (a.y + a.h))[0];
		return withBox(all, id, { y: above ? above.y : tile.y - 1 });
	}
	const below = columns.filter((p) => p.y >= tile.y + tile.h).sort((a, b) => a.y - b.y)[0];
	if (!below) return [...all];
	return withBox(withBox(all, below.id, { y: tile.y }), id, { y: tile.y + below.h });
}

/** The places as the order of reading: from the top, and in a row from the left. */
export const inOrder = (all: readonly Placed[]): Placed[] => [...all].sort((a, b) => a.y - b.y || a.x - b.x);

/** The row below all tiles. */
export const bottom = (all: readonly Placed[]): number => Math.max(0, ...all.map((p) => p.y + p.h));

/** The tiles whose places differ. */
export function changed(before: readonly Placed[], after: readonly Placed[]): Placed[] {
	const old = new Map(before.map((p) => [p.id, p]));
	return after.filter((p) => {
		const was = old.get(p.id);
		return !was || was.x !== p.x || was.y !== p.y || was.w !== p.w || was.h !== p.h;
	});
}

/** How near to the top or the bottom of the window the page scrolls while a tile is dragged, in pixels, and how fast at most, per second. */
const edge = 80;
const fastest = 1200;

/** How many pixels per second the page scrolls while a tile is dragged at a height of a window: the nearer to an edge, the faster. */
export function edgeSpeed(y: number, height: number): number {
	const zone = Math.min(edge, height / 4);
	if (y < zone) return -fastest * Math.min(1, (zone - y) / zone);
	if (y > height - zone) return fastest * Math.min(1, (y - height + zone) / zone);
	return 0;
}

function inGrid(p: Placed): Placed {
	const w = clamp(Math.round(p.w), leastWidth, gridColumns);
	const h = clamp(Math.round(p.h), leastHeight, mostHeight);
	return { id: p.id, w, h, x: clamp(Math.round(p.x), 0, gridColumns - w), y: Math.max(0, Math.round(p.y)) };
}

const clamp = (n: number, least: number, most: number): number => Math.max(least, Math.min(most, n));

/** Moves all tiles up as far as they can, in the order of their rows. `first` comes before others that begin in the same row. */
function compact(all: readonly Placed[], first?: number): Placed[] {
	const order = [...all].sort((a, b) => a.y - b.y || Number(b.id === first) - Number(a.id === first) || a.x - b.x);
	const done: Placed[] = [];
	for (const tile of order) {
		const y = done.filter((p) => p.x < tile.x + tile.w && tile.x < p.x + p.w).reduce((top, p) => Math.max(top, p.y + p.h), 0);
		done.push({ ...tile, y });
	}
	return done;
}
