import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { isAbort, messageOf } from "../../api/client";
import { ask, type QueryNode } from "../../api/query";
import { note } from "../../sql/history";
import { toast } from "../../ui/dialog";
import type { Ran, Rows } from "./results";

/** An error with the query that it is of. */
interface Failed {
	error: unknown;
	asked: QueryNode;
}

/** A query that runs, or that ran. The page that is left gives it up, and `clear` does, which forgets it. */
export function useRun() {
	const [answer, setAnswer] = useState<Ran>();
	const [failure, setFailure] = useState<Failed>();
	const [since, setSince] = useState<number | null>(null);
	const control = useRef<AbortController | null>(null);
	const giveUp = useCallback(() => {
		const running = control.current;
		control.current = null;
		running?.abort();
	}, []);
	useEffect(() => giveUp, []);
	const clear = useCallback(() => {
		giveUp();
		setAnswer(undefined);
		setFailure(undefined);
		setSince(null);
	}, []);
	const start = useCallback(async (query: QueryNode) => {
		control.current?.abort();
		const own = new AbortController();
		control.current = own;
		const began = Date.now();
		setSince(began);
		setFailure(undefined);
		try {
			const got = await ask<Rows>(
				{ ...query, modifiers: { ...(query.modifiers as object | undefined), timings: true } },
				{ refresh: "force_blocking", signal: own.signal, exact: true },
			);
			note({ query: String(query.query), at: began, rows: got.data.results.length, seconds: got.headers.elapsed / 1000 });
			if (control.current === own) setAnswer({ ...got, asked: query });
		} catch (error) {
			if (control.current !== own) return;
			if (isAbort(error)) {
				toast("Query canceled");
			} else {
				note({ query: String(query.query), at: began, error: messageOf(error) });
				setFailure({ error, asked: query });
				setAnswer(undefined);
			}
		}
		if (control.current === own) setSince(null);
	}, []);
	const cancel = useCallback(() => control.current?.abort(), []);
	return { answer, failure, since, start, cancel, clear };
}
