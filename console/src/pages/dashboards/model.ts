import type { Insight, User } from "../../insights/model";
import type { Box } from "./layout";

/** A dashboard: docs/saved-insights.md, "Dashboards". Lists leave the tiles and the filters out. */
export interface Dashboard {
	id: number;
	name: string | null;
	description?: string;
	pinned: boolean;
	tags?: string[];
	created_at?: string | null;
	created_by?: User | null;
	last_viewed_at?: string | null;
	filters?: DashboardFilters;
	tiles?: Tile[];
}

/** What a dashboard is called. */
export const nameOf = (dashboard: Pick<Dashboard, "name">): string => dashboard.name || "Dashboard without a name";

/** The filters that a dashboard puts on its insights. */
export interface DashboardFilters {
	date_from?: string | null;
	date_to?: string | null;
	properties?: unknown;
	[field: string]: unknown;
}

/** What is shown at a place of a dashboard: an insight or a text. */
export interface Tile {
	id: number;
	order?: number | null;
	insight: Insight | null;
	text: { id?: number; body: string } | null;
	layouts?: { sm?: Partial<Box>; xs?: Partial<Box> } | null;
	color?: string | null;
}
