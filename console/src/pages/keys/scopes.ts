/** What the routes of one kind of thing let a key do. */
export interface ScopeObject {
	object: string;
	title: string;
	read: string;
	/** Missing where nothing can be written. */
	write?: string;
}

export interface ScopeGroup {
	title: string;
	objects: ScopeObject[];
}

/** The scopes that open something here: docs/api.md. Writing includes reading. */
export const scopeGroups: ScopeGroup[] = [
	{
		title: "Questions",
		objects: [
			{ object: "query", title: "Queries", read: "Ask any query: SQL, insights, events, people." },
			{ object: "insight", title: "Insights", read: "See saved insights and their results.", write: "Save, change and delete insights." },
			{ object: "dashboard", title: "Dashboards", read: "See dashboards and their tiles.", write: "Create, change and delete dashboards." },
			{
				object: "insight_variable",
				title: "Variables",
				read: "See the variables of queries.",
				write: "Create, change and delete variables.",
			},
			{ object: "alert", title: "Alerts", read: "See alerts and their checks.", write: "Create, change and delete alerts." },
		],
	},
	{
		title: "Endpoints",
		objects: [
			{
				object: "endpoint",
				title: "Endpoints",
				read: "List, read and run endpoints.",
				write: "Publish, change and delete endpoints. With this a key can run any query, as an endpoint.",
			},
		],
	},
	{
		title: "Data",
		objects: [
			{ object: "event_definition", title: "Events", read: "See the names of events.", write: "Describe, verify and hide events." },
			{
				object: "property_definition",
				title: "Properties",
				read: "See properties and their types.",
				write: "Describe properties and change their types.",
			},
			{ object: "person", title: "People", read: "See people and their properties.", write: "Change and delete people." },
			{ object: "group", title: "Groups", read: "See the kinds of groups." },
			{ object: "action", title: "Actions", read: "See actions.", write: "Create and change actions." },
			{ object: "cohort", title: "Cohorts", read: "See cohorts and who is in them.", write: "Create, change and recalculate cohorts." },
			{ object: "batch_import", title: "Imports", read: "See imports of files.", write: "Import files of events and people." },
			{ object: "annotation", title: "Annotations", read: "See annotations.", write: "Create and change annotations." },
		],
	},
	{
		title: "Project",
		objects: [
			{
				object: "project",
				title: "Project and keys",
				read: "See the project's settings, its state, and the names of keys.",
				write: "Change settings. Create, roll and revoke keys, none of which can do more than this one.",
			},
			{ object: "organization", title: "Organization", read: "See the organization of the project." },
			{ object: "organization_member", title: "Members", read: "See who works with the project." },
			{ object: "user", title: "User", read: "See who the key belongs to." },
		],
	},
];

const objects = scopeGroups.flatMap((group) => group.objects);

/** What a scope lets a key do, in a sentence. */
export function explainScope(scope: string): string {
	if (scope === "*") return "Everything in the project.";
	const [object, action] = scope.split(":");
	const found = objects.find((o) => o.object === object);
	const about = action === "write" ? found?.write : found?.read;
	return about ?? "Grants nothing on this server.";
}

/** A choice of scopes for one purpose. */
export interface Preset {
	name: string;
	about: string;
	scopes: string[];
}

export const presets: Preset[] = [
	{ name: "Read everything", about: "See all of it and change nothing.", scopes: objects.map((o) => `${o.object}:read`) },
	{ name: "Run endpoints", about: "List, read and run endpoints.", scopes: ["endpoint:read"] },
	{
		name: "Terraform",
		about: "Insights, dashboards and alerts as code.",
		scopes: ["alert:write", "dashboard:write", "insight:write", "project:read", "query:read"],
	},
	{
		name: "MCP server",
		about: "What the tools of an assistant need. They can publish endpoints and save insights.",
		scopes: [
			"action:read",
			"alert:write",
			"cohort:read",
			"dashboard:write",
			"endpoint:write",
			"event_definition:read",
			"insight:write",
			"insight_variable:write",
			"organization:read",
			"project:read",
			"property_definition:read",
			"query:read",
			"user:read",
		],
	},
];

/** Reports whether one of the scopes held includes a wanted one. */
export function covers(held: readonly string[], wanted: string): boolean {
	const [object, action] = wanted.split(":");
	return held.some((s) => s === "*" || s === wanted || (action === "read" && s === `${object}:write`));
}

/** How much a key may do with an object. */
export type Level = "none" | "read" | "write";

export function levelOf(scopes: readonly string[], object: string): Level {
	if (covers(scopes, `${object}:write`)) return "write";
	return covers(scopes, `${object}:read`) ? "read" : "none";
}

/** The scopes with another level for an object; in order, each once. */
export function withLevel(scopes: readonly string[], object: string, level: Level): string[] {
	const others = scopes.filter((s) => s !== `${object}:read` && s !== `${object}:write`);
	return level === "none" ? others : [...others, `${object}:${level}`].toSorted();
}
