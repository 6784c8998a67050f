import { ArrowDownRight, GripHorizontal } from "lucide-preact";
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { titleOf } from "../../insights/model";
import { InsightTile } from "../../insights/tile";
import { classes, Empty } from "../../ui/basics";
import { Markdown } from "../../ui/markdown-view";
import { type Box, gridColumns, inOrder, nudged, type Placed, placesOf, withBox } from "./layout";
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

/** The handles that move and resize a tile, by the pointer or the arrow keys. */
function Handles({ name, place, places, grid, onShow, onDone }: HandlesProps) {
	const drag = useRef<{ x: number; y: number; from: Placed; places: Placed[]; last: Placed[] } | null>(null);
	const used = useRef<HTMLElement | null>(null);
	useLayoutEffect(() => {
		// A tile that comes before or after another one is put elsewhere in the page, which takes the focus from its handle.
		const handle = used.current;
		used.current = null;
		if (handle?.isConnected && document.activeElement === document.body) handle.focus();
	});
	const begin = (event: JSX.TargetedPointerEvent<HTMLElement>) => {
		if (event.button !== 0) return;
		event.preventDefault();
		event.currentTarget.focus();
		event.currentTarget.setPointerCapture(event.pointerId);
		drag.current = { x: event.clientX, y: event.clientY, from: place, places, last: places };
	};
	const move = (event: JSX.TargetedPointerEvent<HTMLElement>, to: (from: Placed, dx: number, dy: number) => Partial<Box>) => {
		const at = drag.current;
		if (!at || !grid.current) return;
		const dx = Math.round((event.clientX - at.x) / ((grid.current.clientWidth + gap) / gridColumns));
		const dy = Math.round((event.clientY - at.y) / (rowHeight + gap));
		at.last = withBox(at.places, place.id, to(at.from, dx, dy));
		onShow(at.last);
	};
	const end = () => {
		if (drag.current) onDone(drag.current.last);
		drag.current = null;
	};
	const cancel = () => {
		if (drag.current) onShow(drag.current.places);
		drag.current = null;
	};
	const keys = (event: JSX.TargetedKeyboardEvent<HTMLElement>, resize: boolean) => {
		if (event.key === "Escape") cancel();
		const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
		if (!step) return;
		event.preventDefault();
		const [dx = 0, dy = 0] = step;
		const sized = resize || event.shiftKey;
		const next = sized ? withBox(places, place.id, { w: place.w + dx, h: place.h + dy }) : nudged(places, place.id, dx, dy);
		used.current = event.currentTarget;
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
				onPointerDown={begin}
				onPointerMove={(event) => move(event, (from, dx, dy) => ({ x: from.x + dx, y: from.y + dy }))}
				onPointerUp={end}
				onPointerCancel={cancel}
				onKeyDown={(event) => keys(event, false)}
			>
				<GripHorizontal size={14} aria-hidden="true" />
			</button>
			<button
				type="button"
				class="dash-resize"
				aria-label={`Resize ${name}`}
				title="Drag, or press the arrow keys"
				onPointerDown={begin}
				onPointerMove={(event) => move(event, (from, dx, dy) => ({ w: from.w + dx, h: from.h + dy }))}
				onPointerUp={end}
				onPointerCancel={cancel}
				onKeyDown={(event) => keys(event, true)}
			>
				<ArrowDownRight size={14} aria-hidden="true" />
			</button>
		</>
	);
}
