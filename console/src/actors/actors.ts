import { ask, type QueryNode } from "../api/query";
import { csv } from "../ui/csv";
import { text } from "../ui/format";

/** A person or a group behind a number, or one that is in no table any more: then there is the id alone. */
export interface Actor {
	id: string;
	properties?: Record<string, unknown>;
	created_at?: string;
	distinct_ids?: string[];
	group_key?: string;
	group_type_index?: number;
}

/** An actor, and in how many of the events it takes part where that is known. */
export interface ActorRow {
	actor: Actor;
	events: number | null;
}

/** How many actors a page of the list shows. */
export const pageSize = 50;

/** The most rows that one answer can have: docs/api.md, "Limits". */
export const mostRows = 50_000;

/** The insight that a drill-down asks about. */
export function insightOf(source: QueryNode): QueryNode {
	let node = source;
	while (typeof node.source === "object" && node.source !== null && "kind" in node.source) node = node.source as QueryNode;
	return node;
}

/** Whether the numbers of the events of each actor are known. */
const countsEvents = (source: QueryNode): boolean => insightOf(source).kind === "TrendsQuery";

/** Reports whether the events themselves can be listed: those behind the number. Other drill-downs know their actors alone. */
export const listsEvents = (source: QueryNode): boolean => countsEvents(source) && source.kind === "InsightActorsQuery";

/** What an ActorsQuery asks: of a drill-down, or of another ActorsQuery, whose filters it keeps. */
const within = (source: QueryNode): { source: QueryNode; properties?: unknown } =>
	source.kind === "ActorsQuery" ? { source: source.source as QueryNode, properties: source.properties } : { source };

/** The query for some of the actors behind a number, those with most events first. */
export function actorsQuery(source: QueryNode, page: { search?: string; offset?: number; limit?: number } = {}): QueryNode {
	const counted = countsEvents(source);
	return {
		kind: "ActorsQuery",
		select: counted ? ["actor", "event_count"] : ["actor"],
		orderBy: counted ? ["event_count DESC"] : [],
		...within(source),
		limit: page.limit ?? pageSize,
		offset: page.offset ?? 0,
		...(page.search && { search: page.search }),
	};
}

/** The query for how many actors there are behind a number. */
export function countQuery(source: QueryNode, search = ""): QueryNode {
	return { kind: "ActorsQuery", select: ["count() over ()"], orderBy: [], ...within(source), limit: 1, ...(search && { search }) };
}

/** The query for the members of a cohort of the people behind a number, or of those among them who are searched for. */
export const cohortQuery = (source: QueryNode, search = ""): QueryNode => ({
	kind: "ActorsQuery",
	select: ["id"],
	orderBy: [],
	source,
	...(search && { search }),
});

/** Asks for a page of the actors. */
export async function loadActors(
	source: QueryNode,
	page: { search?: string; offset?: number; limit?: number },
	signal?: AbortSignal,
): Promise<{ rows: ActorRow[]; more: boolean }> {
	const { data } = await ask<unknown[][]>(actorsQuery(source, page), { signal });
	return { rows: rowsOf(data.results, data.columns ?? []), more: data.hasMore === true };
}

/** Asks how many actors there are. */
export async function countActors(source: QueryNode, search: string, signal?: AbortSignal): Promise<number> {
	const { data } = await ask<unknown[][]>(countQuery(source, search), { signal });
	return Number(data.results[0]?.[0] ?? 0);
}

/** Reads the rows of an answer by the names of its columns. */
export function rowsOf(results: unknown[][], columns: string[]): ActorRow[] {
	const actor = columns.indexOf("actor");
	const events = columns.indexOf("event_count");
	return results.map((row) => ({
		actor: actorOf(row[actor]),
		events: events < 0 ? null : Number(row[events]),
	}));
}

function actorOf(value: unknown): Actor {
	return typeof value === "object" && value !== null ? (value as Actor) : { id: text(value) };
}

/** Reports whether an actor is a group, which has no page. */
export const isGroup = (actor: Actor): boolean => actor.group_key !== undefined || actor.group_type_index !== undefined;

/** The properties that name a person, the best first. */
const naming = ["email", "name", "username"];

/** What an actor is called: its email or name, else an id. */
export function nameOf(actor: Actor): string {
	const properties = actor.properties ?? {};
	if (isGroup(actor)) return text(properties.name) || actor.group_key || actor.id;
	for (const name of naming) {
		const value = text(properties[name]);
		if (value) return value;
	}
	return actor.distinct_ids?.[0] ?? actor.id;
}

/** Actors as CSV text. */
export function actorsCSV(rows: ActorRow[]): string {
	const counted = rows.some((row) => row.events !== null);
	const header = ["id", "name", "distinct_ids", "created_at", ...(counted ? ["events"] : [])];
	return csv(
		header,
		rows.map(({ actor, events }) => [
			isGroup(actor) ? (actor.group_key ?? actor.id) : actor.id,
			nameOf(actor),
			(actor.distinct_ids ?? []).join(" "),
			actor.created_at ?? "",
			...(counted ? [events] : []),
		]),
	);
}
