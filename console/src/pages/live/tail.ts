import { ApiError } from "../../api/client";
import type { EventRow } from "../../data/events";
import { micros } from "../../data/time";

/** The most events that are held. */
export const most = 1000;

/** Milliseconds between two polls. */
export const pace = 2000;

/** Events are visible some seconds after they arrived, so each poll asks for those of the last seconds again. */
const overlap = 30_000_000;

/** Now and then a poll looks further back, for events that the server could not deliver for a while. */
const longOverlap = 900_000_000;
const longEvery = 15;

/** An event with what puts it in its place. */
export interface TailRow extends EventRow {
	key: string;
	/** Microseconds since 1970. */
	arrivedAt: number;
	happenedAt: number;
	/** The poll that brought it. */
	poll: number;
}

/** What was received until now: the newest events by their arrival, each once. */
export interface Tail {
	rows: readonly TailRow[];
	/** How many came since the first poll. */
	received: number;
	/** When the server answered last, in microseconds; null before the first answer. */
	asOf: number | null;
	polls: number;
}

export const nothing: Tail = { rows: [], received: 0, asOf: null, polls: 0 };

/** For how many polls an event is marked as new. */
const newFor = 3;

/** Reports whether an event came in a moment ago. Those of the first poll are not new. */
export function isNew(tail: Tail, row: TailRow): boolean {
	return row.poll > 1 && tail.polls - row.poll < newFor;
}

/** The arrival from which on the next poll asks for events, in microseconds; null for the newest of all. */
export function since(tail: Tail): number | null {
	if (tail.asOf === null) return null;
	const back = tail.polls % longEvery === 0 ? longOverlap : overlap;
	const oldest = tail.rows.length >= most ? (tail.rows[tail.rows.length - 1]?.arrivedAt ?? 0) : 0;
	return Math.max(tail.asOf - back, oldest);
}

/** Adds what a poll brought. What is there already is not added again, and only the newest are kept. */
export function add(tail: Tail, got: readonly EventRow[], asOf: string): Tail {
	const polls = tail.polls + 1;
	const known = new Set(tail.rows.map((row) => row.key));
	const more: TailRow[] = [];
	for (const row of got) {
		const key = `${row.uuid}/${row.event}/${row.distinctID}`;
		if (known.has(key)) continue;
		known.add(key);
		more.push({ ...row, key, arrivedAt: micros(row.arrived), happenedAt: micros(row.timestamp), poll: polls });
	}
	const rows = more.length ? [...tail.rows, ...more].sort(newestFirst).slice(0, most) : tail.rows;
	const added = polls > 1 && more.length ? rows.filter((row) => row.poll === polls).length : 0;
	return { rows, received: tail.received + added, asOf: Math.max(micros(asOf), tail.asOf ?? 0), polls };
}

/** The order of the server's answers: by arrival, then time, then uuid, all descending. */
function newestFirst(a: TailRow, b: TailRow): number {
	return b.arrivedAt - a.arrivedAt || b.happenedAt - a.happenedAt || (a.key < b.key ? 1 : -1);
}

/** Milliseconds until the next poll after `failures` failed ones in a row, of which `error` is the last. */
export function waitAfter(error: unknown, failures: number): number {
	if (error instanceof ApiError && error.retryAfter !== null) return Math.max(pace, error.retryAfter * 1000);
	return Math.min(60_000, pace * 2 ** failures);
}

/** Reports whether another poll can help after an error. A wrong filter stays wrong. */
export function canRetry(error: unknown): boolean {
	return !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500;
}
