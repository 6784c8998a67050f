import { ArrowDownRight, GripHorizontal } from "lucide-preact";
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { titleOf } from "../../insights/model";
import { InsightTile } from "../../insights/tile";
import { classes, Empty } from "../../ui/basics";
import { Markdown } from "../../ui/markdown-view";
import { type Box, edgeSpeed, gridColumns, inOrder, nudged, type Placed, placesOf, withBox } from "./layout";
import type { Dashboard, DashboardFilters, Tile } from "./model";

/** Height of a row of the grid and the gap between two, in pixels; styles/dashboards.css has the same. */
const rowHeight = 64;
const gap = 16;

/** What a tile has besides its chart: borders, the title and the space around. */
const around = 68;

interface TilesProps {
	dashboard: Dashboard;
	/** Filters on top of those of the dashboard. */
	filters?: DashboardFilters;
	/** When this number changes, new results are computed. */
	turn?: number;
	/** The menu of a tile. */
	menu?: (tile: Tile) => ComponentChildren;
	/** Takes other places of tiles. With it, tiles can be moved and resized. */
	onPlaces?: (places: Placed[]) => void;
}

/** The tiles of a dashboard in their places. */
export function DashboardTiles({ dashboard, filters, turn, menu, onPlaces }: TilesProps) {
	const tiles = dashboard.tiles ?? [];
	const grid = useRef<HTMLDivElement>(null);
	const kept = JSON.stringify(tiles.map((t) => [t.id, t.layouts?.sm]));
	const [places, setPlaces] = useState<Placed[]>(() => placesOf(tiles));
	const [said, setSaid] = useState("");
	// An effect after the next paint would undo what was moved in between.
	useLayoutEffect(() => setPlaces(placesOf(tiles)), [kept]);
	const known = new Map(tiles.map((t) => [t.id, t]));
	const show = (next: Placed[], id: number) => {
		setPlaces(next);
		const at = next.find((p) => p.id === id);
		if (at) setSaid(`Column ${at.x + 1}, row ${at.y + 1}, ${at.w} wide, ${at.h} high`);
	};
	return (
		<>
			<div class={classes("dash-grid", onPlaces && "dash-editing")} ref={grid}>
				{inOrder(places).map((place) => {
					const tile = known.get(place.id);
					if (!tile) return null;
					return (
						<div
							key={tile.id}
							class="dash-place"
							data-tile={tile.id}
							style={{ gridColumn: `${place.x + 1} / span ${place.w}`, gridRow: `${place.y + 1} / span ${place.h}` }}
						>
							<TileBody
								tile={tile}
								dashboard={dashboard.id}
								filters={filters}
								turn={turn}
								height={place.h * (rowHeight + gap) - gap - around}
								menu={menu?.(tile)}
							/>
							{onPlaces && (
								<Handles name={nameOf(tile)} place={place} places={places} grid={grid} onShow={(p) => show(p, tile.id)} onDone={onPlaces} />
							)}
						</div>
					);
				})}
			</div>
			{onPlaces && (
				<p class="visually-hidden" aria-live="polite">
					{said}
				</p>
			)}
		</>
	);
}

const nameOf = (tile: Tile): string => (tile.insight ? titleOf(tile.insight) : "the text");

interface BodyProps {
	tile: Tile;
	dashboard: number;
	filters?: DashboardFilters;
	turn?: number;
	height: number;
	menu?: ComponentChildren;
}

function TileBody({ tile, dashboard, filters, turn, height, menu }: BodyProps) {
	if (tile.insight?.short_id) {
		return (
			<InsightTile insight={tile.insight} dashboard={dashboard} filters={filters} turn={turn} height={height}>
				{menu}
			</InsightTile>
		);
	}
	return (
		<article class="tile" aria-label={tile.text ? "Text" : "Tile"}>
			{menu && <div class="tile-actions tile-corner">{menu}</div>}
			<div class="tile-body">{tile.text ? <Markdown text={tile.text.body} /> : <Empty title="Your key may not see this tile" />}</div>
		</article>
	);
}

interface HandlesProps {
	name: string;
	place: Placed;
	places: Placed[];
	grid: { current: HTMLElement | null };
	/** Shows places while they are being chosen. */
	onShow: (places: Placed[]) => void;
	/** Takes the places that were chosen. */
	onDone: (places: Placed[]) => void;
}

/** The handles that move and resize a tile, by the pointer or the arrow keys. The page scrolls along. */
function Handles({ name, place, places, grid, onShow, onDone }: HandlesProps) {
	const used = useRef<{ handle: HTMLElement; byKey: boolean } | null>(null);
	const dragging = useRef<AbortController | null>(null);
	const latest = useRef({ onShow, onDone });
	useLayoutEffect(() => {
		latest.current = { onShow, onDone };
		// A tile that comes before or after another one is put elsewhere in the page, which takes the focus from its handle.
		const { handle, byKey } = used.current ?? {};
		used.current = null;
		if (!handle?.isConnected) return;
		if (document.activeElement === document.body) handle.focus({ preventScroll: true });
		if (byKey) handle.closest(".dash-place")?.scrollIntoView({ block: "nearest" });
	});
	useLayoutEffect(() => () => dragging.current?.abort(), []);
	const begin = (event: JSX.TargetedPointerEvent<HTMLElement>, to: (dx: number, dy: number) => Partial<Box>) => {
		if (event.button !== 0) return;
		event.preventDefault();
		const handle = event.currentTarget;
		handle.focus();
		handle.setPointerCapture(event.pointerId); // which is lost when the tile is put elsewhere in the page
		dragging.current?.abort();
		const drag = new AbortController();
		dragging.current = drag;
		const pointer = { x: event.clientX, y: event.clientY };
		const start = { x: pointer.x, y: pointer.y + window.scrollY };
		let last = places;
		let moved = false;
		const show = () => {
			if (!grid.current) return;
			const dx = Math.round((pointer.x - start.x) / ((grid.current.clientWidth + gap) / gridColumns));
			const dy = Math.round((pointer.y + window.scrollY - start.y) / (rowHeight + gap));
			last = withBox(places, place.id, to(dx, dy));
			used.current = { handle, byKey: false };
			latest.current.onShow(last);
		};
		const cancel = () => {
			drag.abort();
			latest.current.onShow(places);
		};
		let before = performance.now();
		const scroll = (now: number) => {
			if (drag.signal.aborted) return;
			if (moved) window.scrollBy(0, (edgeSpeed(pointer.y, window.innerHeight) * Math.min(50, now - before)) / 1000);
			before = now;
			requestAnimationFrame(scroll);
		};
		requestAnimationFrame(scroll);
		const on = <K extends keyof WindowEventMap>(name: K, act: (event: WindowEventMap[K]) => void) =>
			window.addEventListener(name, act, { signal: drag.signal });
		on("scroll", show);
		on("pointermove", (at) => {
			if (at.pointerId !== event.pointerId) return;
			[pointer.x, pointer.y] = [at.clientX, at.clientY];
			moved = true;
			show();
		});
		on("pointerup", (at) => {
			if (at.pointerId !== event.pointerId) return;
			drag.abort();
			latest.current.onDone(last);
		});
		on("pointercancel", cancel);
		on("keydown", (key) => {
			if (key.key === "Escape") cancel();
		});
	};
	const keys = (event: JSX.TargetedKeyboardEvent<HTMLElement>, resize: boolean) => {
		const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
		if (!step) return;
		event.preventDefault();
		const [dx = 0, dy = 0] = step;
		const sized = resize || event.shiftKey;
		const next = sized ? withBox(places, place.id, { w: place.w + dx, h: place.h + dy }) : nudged(places, place.id, dx, dy);
		used.current = { handle: event.currentTarget, byKey: true };
		onShow(next);
		onDone(next);
	};
	return (
		<>
			<button
				type="button"
				class="dash-move"
				aria-label={`Move ${name}`}
				title="Drag, or press the arrow keys; with Shift they resize"
				onPointerDown={(event) => begin(event, (dx, dy) => ({ x: place.x + dx, y: place.y + dy }))}
				onKeyDown={(event) => keys(event, false)}
			>
				<GripHorizontal size={14} aria-hidden="true" />
			</button>
			<button
				type="button"
				class="dash-resize"
				aria-label={`Resize ${name}`}
				title="Drag, or press the arrow keys"
				onPointerDown={(event) => begin(event, (dx, dy) => ({ w: place.w + dx, h: place.h + dy }))}
				onKeyDown={(event) => keys(event, true)}
			>
				<ArrowDownRight size={14} aria-hidden="true" />
			</button>
		</>
	);
}
