import { Pin, Plus, RefreshCw } from "lucide-preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { get, patch, post } from "../../api/client";
import { parse, stringify } from "../../api/json";
import { type Resource, useResource } from "../../api/use";
import { type Details, DetailsDialog } from "../../data/details";
import { Tags } from "../../data/definition";
import { LoadedPage } from "../../data/page";
import { DateRange } from "../../editor/date-range";
import { FilterGroup } from "../../editor/filter-group";
import type { Filters, FilterType } from "../../editor/filters";
import { same } from "../../insights/model";
import { navigate, pageAddress, place } from "../../router";
import { can } from "../../session";
import { Button, Card, Empty, PageHead } from "../../ui/basics";
import { attempt, toast } from "../../ui/dialog";
import { Menu, type MenuItem } from "../../ui/menu";
import { AddInsight, TextDialog } from "./add";
import { changed, type Placed, placesOf } from "./layout";
import { DeleteDashboard } from "./list";
import { type Dashboard, type DashboardFilters, nameOf, type Tile } from "./model";
import { DashboardTiles } from "./tiles";

export default function DashboardPage({ id }: { id: string }) {
	const whole = useResource((signal) => get<Dashboard>(`dashboards/${encodeURIComponent(id)}/`, {}, signal), [id]);
	return (
		<LoadedPage of={whole} title="Dashboard" rows={8}>
			{(dashboard) => <Whole of={whole} dashboard={dashboard} />}
		</LoadedPage>
	);
}

type Open = "insight" | "text" | "details" | "delete" | Tile | null;

function Whole({ of, dashboard }: { of: Resource<Dashboard>; dashboard: Dashboard }) {
	const [editing, setEditing] = useState(false);
	const [turn, setTurn] = useState(0);
	const [open, setOpen] = useState<Open>(null);
	const filters = overrideIn(place.value.search);
	const writes = can("dashboard:write");
	const path = `dashboards/${dashboard.id}/`;
	const change = (body: unknown, done?: string) => attempt(() => patch<Dashboard>(path, body).then(of.set), done);
	const saveDetails = async (_: Details, changes: Partial<Details>) => of.set(await patch<Dashboard>(path, changes));
	const onPlaces = useSaver(of, dashboard);
	const shut = () => setOpen(null);
	const menu: MenuItem[] = [
		{ label: "Name, description, tags", disabled: !writes, onSelect: () => setOpen("details") },
		{ label: dashboard.pinned ? "Unpin" : "Pin to home", disabled: !writes, onSelect: () => change({ pinned: !dashboard.pinned }) },
		{ label: "Duplicate", disabled: !writes, onSelect: () => attempt(() => duplicate(dashboard)) },
		{ label: "Delete", danger: true, disabled: !writes, onSelect: () => setOpen("delete") },
	];
	const tiles = dashboard.tiles ?? [];
	return (
		<>
			<PageHead
				title={
					<>
						{nameOf(dashboard)} {dashboard.pinned && <Pin size={14} aria-label="Pinned" />}
					</>
				}
				about={
					(dashboard.description || (dashboard.tags ?? []).length > 0) && (
						<>
							{dashboard.description} <Tags tags={dashboard.tags ?? []} />
						</>
					)
				}
			>
				<Button icon={<RefreshCw size={14} aria-hidden="true" />} disabled={tiles.length === 0} onClick={() => setTurn((n) => n + 1)}>
					Refresh all
				</Button>
				{writes && (
					<>
						<Button aria-pressed={editing} onClick={() => setEditing(!editing)} disabled={tiles.length === 0}>
							{editing ? "Done" : "Arrange"}
						</Button>
						<Menu
							label="Add"
							items={[
								{ label: "Insight", onSelect: () => setOpen("insight") },
								{ label: "New insight", onSelect: () => navigate(`${pageAddress("insights", "new")}?dashboard=${dashboard.id}`) },
								{ label: "Text", onSelect: () => setOpen("text") },
							]}
						>
							<Plus size={14} aria-hidden="true" /> Add
						</Menu>
					</>
				)}
				<Menu label="More" icon items={menu}>
					⋯
				</Menu>
			</PageHead>
			<FilterBar
				dashboard={dashboard}
				override={filters}
				onSave={(f) => change({ filters: f }, "Filters saved").then((ok) => ok && clearOverride())}
			/>
			<h2 class="visually-hidden">Tiles</h2>
			{tiles.length === 0 ? (
				<Card>
					<Empty title="Nothing is on this dashboard yet">{writes && <p>Add an insight or a text.</p>}</Empty>
				</Card>
			) : (
				<DashboardTiles
					dashboard={dashboard}
					filters={filters ?? undefined}
					turn={turn}
					menu={writes ? (tile) => <TileMenu tile={tile} dashboard={dashboard} of={of} onEdit={() => setOpen(tile)} /> : undefined}
					onPlaces={editing ? onPlaces : undefined}
				/>
			)}
			{open === "insight" && <AddInsight dashboard={dashboard} onClose={shut} onAdded={of.set} />}
			{open === "text" && <TextDialog dashboard={dashboard} onClose={shut} onSaved={of.reload} />}
			{typeof open === "object" && open?.text && <TextDialog dashboard={dashboard} tile={open} onClose={shut} onSaved={of.reload} />}
			{open === "details" && <DetailsDialog of={dashboard} onClose={shut} onSave={saveDetails} />}
			{open === "delete" && <DeleteDashboard dashboard={dashboard} onClose={shut} onDeleted={() => navigate(pageAddress("dashboard"))} />}
		</>
	);
}

/** How long places are waited for before they are saved, in milliseconds, so that pressing a key many times saves once. */
const settle = 500;

/** Saves the places of tiles that changed, once they have settled: one save after the other, so that the last one stays. */
function useSaver(of: Resource<Dashboard>, dashboard: Dashboard): (places: Placed[]) => void {
	const timer = useRef<ReturnType<typeof setTimeout>>();
	const latest = useRef<Placed[]>();
	const saved = useRef(dashboard);
	const saving = useRef(Promise.resolve());
	useLayoutEffect(() => {
		saved.current = dashboard;
	}, [dashboard]);
	const save = async (places: Placed[]) => {
		const moved = movedTiles(saved.current.tiles ?? [], places);
		if (moved.length > 0) saved.current = await patch<Dashboard>(`dashboards/${dashboard.id}/`, { tiles: moved });
		// What was moved meanwhile is not put back: it is saved next.
		if (places === latest.current && saved.current !== dashboard) of.set(saved.current);
	};
	return (places) => {
		latest.current = places;
		clearTimeout(timer.current);
		timer.current = setTimeout(() => {
			saving.current = saving.current.then(async () => {
				if (!(await attempt(() => save(places)))) of.reload();
			});
		}, settle);
	};
}

/** The tiles that places move, and those that had no place, as a change of the dashboard. */
function movedTiles(tiles: readonly Tile[], places: Placed[]) {
	const known = new Map(tiles.map((t) => [t.id, t]));
	const loose = places.filter((p) => !known.get(p.id)?.layouts?.sm);
	return [...new Set([...changed(placesOf(tiles), places), ...loose])].map(({ id, ...box }) => {
		const layouts = known.get(id)?.layouts;
		return { id, layouts: { ...layouts, sm: { ...layouts?.sm, ...box } } };
	});
}

/** Filters in the address, which hold until they are saved or reset. */
function overrideIn(search: string): DashboardFilters | null {
	try {
		const given = parse(new URLSearchParams(search).get("filters") ?? "null");
		return typeof given === "object" && given !== null && !Array.isArray(given) ? (given as DashboardFilters) : null;
	} catch {
		return null;
	}
}

function clearOverride(): void {
	navigate(place.value.path, { replace: true });
}

/** The filters that can be put on all insights of a dashboard. Conditions in HogQL need a key that may run queries. */
const filterTypes: FilterType[] = ["event", "person", "session", "cohort"];

function FilterBar({
	dashboard,
	override,
	onSave,
}: {
	dashboard: Dashboard;
	override: DashboardFilters | null;
	onSave: (filters: DashboardFilters) => void;
}) {
	const saved = dashboard.filters ?? {};
	const shown = override ?? saved;
	const set = (changes: DashboardFilters) => {
		const next = { ...shown, ...changes };
		if (same(stripped(next), stripped(saved))) clearOverride();
		else navigate(`${place.value.path}?${new URLSearchParams({ filters: stringify(next) })}`, { replace: true });
	};
	return (
		<div class="dash-filters">
			<DateRange
				label="Dates of all insights"
				none="Dates of each insight"
				value={{ date_from: shown.date_from ?? undefined, date_to: shown.date_to ?? undefined, explicitDate: shown.explicitDate }}
				onValue={(range) => set({ ...range, date_from: text(range.date_from), date_to: text(range.date_to) })}
			/>
			<FilterGroup
				label="Filters of all insights"
				value={shown.properties as Filters}
				types={filterTypes}
				onValue={(properties) => set({ properties })}
			/>
			{override && (
				<div class="actions">
					{can("dashboard:write") && (
						<Button small onClick={() => onSave(stripped(override))}>
							Save filters
						</Button>
					)}
					<Button small look="quiet" onClick={clearOverride}>
						Reset
					</Button>
				</div>
			)}
		</div>
	);
}

const text = (value: unknown): string | null => (typeof value === "string" && value ? value : null);

/** Filters without those that say nothing. */
function stripped(filters: DashboardFilters): DashboardFilters {
	const says = ([, v]: [string, unknown]) => v !== null && v !== undefined && v !== false && !(Array.isArray(v) && v.length === 0);
	return Object.fromEntries(Object.entries(filters).filter(says));
}

function TileMenu({ tile, dashboard, of, onEdit }: { tile: Tile; dashboard: Dashboard; of: Resource<Dashboard>; onEdit: () => void }) {
	const path = `dashboards/${dashboard.id}/`;
	const items: MenuItem[] = [];
	if (tile.insight) items.push({ label: "Open insight", onSelect: () => navigate(pageAddress("insights", tile.insight?.short_id ?? "")) });
	if (tile.text) items.push({ label: "Edit text", onSelect: onEdit });
	items.push({
		label: "Duplicate",
		disabled: !!tile.insight && !can("insight:write"),
		onSelect: () => attempt(() => patch<Dashboard>(path, { duplicate_tiles: [{ id: tile.id }] }).then(of.reload)),
	});
	items.push({
		label: "Remove from dashboard",
		danger: true,
		onSelect: () => attempt(() => post(`${path}delete_tile/`, { tile_id: tile.id }).then(of.reload)),
	});
	return (
		<Menu label="Tile" icon items={items}>
			⋯
		</Menu>
	);
}

/** Makes a dashboard with the same insights and copies of the texts, and opens it. */
async function duplicate(dashboard: Dashboard): Promise<void> {
	const copy = await post<Dashboard>("dashboards/", {
		name: `${dashboard.name || "Dashboard"} (copy)`,
		description: dashboard.description,
		tags: dashboard.tags,
		use_dashboard: dashboard.id,
	});
	navigate(pageAddress("dashboard", copy.id));
	toast("The dashboard was duplicated. Both show the same insights.");
}
