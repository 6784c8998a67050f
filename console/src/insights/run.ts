import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { isAbort, type Provenance, send } from "../api/client";
import { parse, stringify } from "../api/json";
import { ask, type QueryNode, type QueryResult } from "../api/query";
import { useSettled } from "../api/use";
import { can } from "../session";
import { drawable, hasRows, type Insight, resultOf } from "./model";

/** The result of a query, and how it came about. */
export interface Ran {
	/** The query that the result is of. */
	query: QueryNode;
	result: QueryResult;
	headers: Provenance;
}

/** A query that is being run. While it runs again, `ran` is the result before. */
export interface Run {
	ran: Ran | undefined;
	error: unknown;
	loading: boolean;
	/** Whether it was stopped: `ran` is then of the query before. */
	cancelled: boolean;
	/** Computes a new result. */
	refresh: () => void;
	/** Stops waiting, and what is computed. */
	stop: () => void;
}

/**
 * Runs a query once it has not changed for a moment, and gives up what is not wanted any more. A key that may not ask queries gets the
 * result of the saved insight, if the query is that of one.
 */
export function useRun(query: QueryNode | null, saved?: Insight): Run {
	const text = query ? stringify(query) : "";
	const settled = useSettled(text, 400);
	const [state, setState] = useState<{ ran?: Ran; error?: unknown; loading: boolean; cancelled?: boolean }>({ loading: true });
	const [turn, setTurn] = useState(0);
	const forced = useRef(0);
	const control = useRef<AbortController | null>(null);
	const id = saved?.short_id;
	useEffect(() => {
		if (!settled) return;
		const mine = new AbortController();
		control.current = mine;
		const force = forced.current !== turn;
		forced.current = turn;
		setState((before) => ({ ...before, loading: true, cancelled: false }));
		const wanted = parse(settled) as QueryNode;
		const asked = can("query:read") ? askQuery(wanted, force, mine.signal) : askSaved(wanted, id, force, mine.signal);
		asked.then(
			(ran) => {
				if (!mine.signal.aborted) setState({ ran, loading: false });
			},
			(error) => {
				if (mine.signal.aborted || isAbort(error)) return;
				setState((before) => ({ ran: before.ran, error, loading: false }));
			},
		);
		return () => mine.abort();
	}, [settled, turn, id]);
	return {
		ran: state.ran,
		error: state.error,
		loading: state.loading || settled !== text,
		cancelled: state.cancelled === true,
		refresh: useCallback(() => setTurn((n) => n + 1), []),
		stop: useCallback(() => {
			control.current?.abort();
			setState((before) => ({ ran: before.ran, loading: false, cancelled: true }));
		}, []),
	};
}

async function askQuery(query: QueryNode, force: boolean, signal: AbortSignal): Promise<Ran> {
	const { data, headers } = await ask(query, { refresh: force ? "force_blocking" : "blocking", signal, exact: hasRows(query) });
	return { query, result: data, headers };
}

async function askSaved(query: QueryNode, id: string | undefined, force: boolean, signal: AbortSignal): Promise<Ran> {
	if (!id) throw new Error("Your key may not run queries. It needs the scope query:read.");
	const search = { refresh: force ? "force_blocking" : "blocking" };
	const { data, headers } = await send<Insight>("GET", `insights/${id}/`, { search, signal, exact: true });
	return { query, result: resultOf(drawable(data)), headers };
}

/** The time, anew after each so many milliseconds, so that ages stay right. */
export function useNow(every = 15_000): number {
	const [now, setNow] = useState(() => Date.now());
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now()), every);
		return () => clearInterval(timer);
	}, [every]);
	return now;
}
