import { ask, type QueryNode, type QueryOptions } from "../api/query";
import { isUUID, quoted } from "./hogql";
import { micros } from "./time";

/** An event in a list. Its properties are loaded when it is opened. */
export interface EventRow {
	uuid: string;
	event: string;
	distinctID: string;
	personID: string | null;
	timestamp: string;
	/** When it arrived. */
	arrived: string;
	url: string | null;
	screen: string | null;
}

/** All of an event. */
export interface FullEvent {
	uuid: string;
	event: string;
	distinct_id: string;
	timestamp: string;
	created_at: string;
	elements_chain: string;
	properties: Record<string, unknown>;
	person: { uuid: string; created_at: string; properties: Record<string, unknown>; distinct_id: string } | null;
}

/** A filter of a query, or a group of them: docs/insights.md, "What all of them share". */
export type Filter = Record<string, unknown>;

/** Which events a list has. */
export interface Wanted {
	event?: string;
	distinctID?: string;
	personID?: string;
	actionID?: number;
	properties?: Filter[];
	/** Filters that may be groups. */
	groups?: Filter[];
	/** The time of the events: exclusive, ISO 8601 or relative such as -7d; "all" for no lower bound. */
	after?: string;
	before?: string;
	/** More conditions in HogQL. */
	where?: string[];
}

const nobody = "00000000-0000-0000-0000-000000000000";
const columns = [
	"uuid",
	"event",
	"distinct_id",
	"person_id",
	"timestamp",
	"created_at",
	"properties.$current_url",
	"properties.$screen_name",
];

/** The query for events, without what it selects. */
export function eventsQuery(wanted: Wanted, more: Record<string, unknown>): QueryNode {
	const where = [...(wanted.where ?? [])];
	if (wanted.distinctID) where.push(`distinct_id = ${quoted(wanted.distinctID)}`);
	const node: QueryNode = { kind: "EventsQuery", after: wanted.after ?? "all", ...more };
	if (wanted.event) node.event = wanted.event;
	if (wanted.before) node.before = wanted.before;
	if (wanted.personID) node.personId = wanted.personID;
	if (wanted.actionID !== undefined) node.actionId = wanted.actionID;
	if (wanted.properties?.length) node.properties = wanted.properties;
	if (wanted.groups?.length) node.fixedProperties = wanted.groups;
	if (where.length) node.where = where;
	return node;
}

export interface EventPage {
	rows: EventRow[];
	more: boolean;
	/** When the server computed it. */
	asOf: string;
}

/** A page of events, the newest first by `by`. */
export async function listEvents(
	wanted: Wanted,
	{
		limit,
		offset = 0,
		by = "timestamp",
		...options
	}: { limit: number; offset?: number; by?: "timestamp" | "arrival" } & Pick<QueryOptions, "signal" | "refresh">,
): Promise<EventPage> {
	const orderBy = by === "arrival" ? ["created_at DESC", "timestamp DESC", "uuid DESC"] : ["timestamp DESC", "uuid DESC"];
	const { data } = await ask<unknown[][]>(eventsQuery(wanted, { select: columns, orderBy, limit, offset }), options);
	return { rows: data.results.map(readRow), more: data.hasMore === true, asOf: data.last_refresh ?? new Date().toISOString() };
}

function readRow(row: unknown[]): EventRow {
	const [uuid, event, distinctID, personID, timestamp, arrived, url, screen] = row as string[];
	return {
		uuid: uuid ?? "",
		event: event ?? "",
		distinctID: distinctID ?? "",
		personID: personID && personID !== nobody ? personID : null,
		timestamp: timestamp ?? "",
		arrived: arrived ?? "",
		url: url ?? null,
		screen: screen ?? null,
	};
}

/** How many events there are. */
export async function countEvents(wanted: Wanted, options?: QueryOptions): Promise<number> {
	const { data } = await ask<[number][]>(eventsQuery(wanted, { select: ["count()"] }), options);
	return data.results[0]?.[0] ?? 0;
}

/** All of one event; null when it is not there any more. */
export async function fullEvent(row: Pick<EventRow, "uuid" | "event" | "timestamp">, signal?: AbortSignal): Promise<FullEvent | null> {
	if (!isUUID(row.uuid)) return null;
	const second = Math.floor(micros(row.timestamp) / 1_000_000) * 1000;
	const wanted: Wanted = {
		event: row.event,
		where: [`uuid = ${quoted(row.uuid)}`],
		after: new Date(second - 1000).toISOString(),
		before: new Date(second + 2000).toISOString(),
	};
	const { data } = await ask<[Omit<FullEvent, "person">, FullEvent["person"]][]>(
		eventsQuery(wanted, { select: ["*", "person"], limit: 1 }),
		{ signal, exact: true },
	);
	const [found] = data.results;
	if (!found) return null;
	const [event, person] = found;
	return { ...event, person: person && person.uuid !== nobody ? person : null };
}
