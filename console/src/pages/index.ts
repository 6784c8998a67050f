import {
	Activity,
	BarChart3,
	Filter,
	HeartPulse,
	Home,
	KeyRound,
	LayoutDashboard,
	ListTree,
	MousePointerClick,
	Terminal,
	Unplug,
	Upload,
	Users,
	UsersRound,
} from "lucide-preact";
import type { ComponentType } from "preact";

/** A page of a project. */
export interface PageRoute {
	/** The path after /project/:id/. */
	pattern: string;
	/** The scope without which the page is of no use. */
	scope?: string;
	load: () => Promise<{ default: ComponentType<never> }>;
}

/** An entry of the navigation. */
export interface NavigationItem {
	path: string;
	title: string;
	icon: typeof Home;
	scope?: string;
	/** The path above pages that belong to it and are not below its own. */
	over?: string;
}

export const routes: PageRoute[] = [
	{ pattern: "", load: () => import("./home/home") },
	{ pattern: "insights", scope: "insight:read", load: () => import("./insights/list") },
	{ pattern: "insights/new", scope: "query:read", load: () => import("./insights/new") },
	{ pattern: "insights/:id", scope: "insight:read", load: () => import("./insights/saved") },
	{ pattern: "dashboard", scope: "dashboard:read", load: () => import("./dashboards/list") },
	{ pattern: "dashboard/:id", scope: "dashboard:read", load: () => import("./dashboards/dashboard") },
	{ pattern: "sql", scope: "query:read", load: () => import("./sql/sql") },
	{ pattern: "endpoints", scope: "endpoint:read", load: () => import("./endpoints/list") },
	{ pattern: "endpoints/:name", scope: "endpoint:read", load: () => import("./endpoints/endpoint") },
	{ pattern: "activity/live", scope: "query:read", load: () => import("./live/live") },
	{ pattern: "persons", scope: "person:read", load: () => import("./persons/list") },
	{ pattern: "persons/deletions", scope: "person:read", load: () => import("./persons/deletions") },
	{ pattern: "person/:id", scope: "person:read", load: () => import("./persons/person") },
	{ pattern: "data-management/events", scope: "event_definition:read", load: () => import("./definitions/events") },
	{ pattern: "data-management/events/:id", scope: "event_definition:read", load: () => import("./definitions/event") },
	{ pattern: "data-management/properties", scope: "property_definition:read", load: () => import("./definitions/properties") },
	{ pattern: "data-management/properties/:id", scope: "property_definition:read", load: () => import("./definitions/property") },
	{ pattern: "data-management/actions", scope: "action:read", load: () => import("./actions/list") },
	{ pattern: "data-management/actions/:id", scope: "action:read", load: () => import("./actions/action") },
	{ pattern: "cohorts", scope: "cohort:read", load: () => import("./cohorts/list") },
	{ pattern: "cohorts/:id", scope: "cohort:read", load: () => import("./cohorts/cohort") },
	{ pattern: "imports", scope: "batch_import:read", load: () => import("./imports/imports") },
	{ pattern: "keys", scope: "project:read", load: () => import("./keys/keys") },
	{ pattern: "health", scope: "project:read", load: () => import("./health/health") },
];

export const navigation: { title: string; items: NavigationItem[] }[] = [
	{
		title: "",
		items: [
			{ path: "", title: "Home", icon: Home },
			{ path: "dashboard", title: "Dashboards", icon: LayoutDashboard, scope: "dashboard:read" },
			{ path: "insights", title: "Insights", icon: BarChart3, scope: "insight:read" },
			{ path: "sql", title: "SQL", icon: Terminal, scope: "query:read" },
			{ path: "endpoints", title: "Endpoints", icon: Unplug, scope: "endpoint:read" },
		],
	},
	{
		title: "Data",
		items: [
			{ path: "activity/live", title: "Live events", icon: Activity, scope: "query:read" },
			{ path: "persons", title: "People", icon: Users, scope: "person:read", over: "person" },
			{ path: "cohorts", title: "Cohorts", icon: UsersRound, scope: "cohort:read" },
			{ path: "data-management/events", title: "Events", icon: ListTree, scope: "event_definition:read" },
			{ path: "data-management/properties", title: "Properties", icon: Filter, scope: "property_definition:read" },
			{ path: "data-management/actions", title: "Actions", icon: MousePointerClick, scope: "action:read" },
			{ path: "imports", title: "Imports", icon: Upload, scope: "batch_import:read" },
		],
	},
	{
		title: "Project",
		items: [
			{ path: "keys", title: "Keys", icon: KeyRound, scope: "project:read" },
			{ path: "health", title: "Health", icon: HeartPulse, scope: "project:read" },
		],
	},
];
