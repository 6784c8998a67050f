import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort } from "../../api/client";
import { stringify } from "../../api/json";
import { listEvents, type Wanted } from "../../data/events";
import { quotedTime } from "../../data/hogql";
import { add, canRetry, most, nothing, pace, since, type Tail, waitAfter } from "./tail";

export interface Polling {
	tail: Tail;
	/** Why the last poll failed. */
	error: unknown;
	/** When it is tried again, in milliseconds since 1970; null when it is not. */
	retryAt: number | null;
}

/** Polls for events while the tab can be seen and `paused` is false. It begins anew when `wanted` changes, and then asks once even while paused. */
export function useTail(wanted: Wanted, paused: boolean): Polling {
	const key = stringify(wanted);
	const [state, setState] = useState<{ key: string; tail: Tail; error: unknown; retryAt: number | null }>(begin(key));
	const held = useRef(state);
	const visible = useVisible();
	if (held.current.key !== key) held.current = begin(key);
	// A filter that changes while paused shows what there is now.
	const running = visible && (!paused || held.current.tail.asOf === null);
	const show = (next: Partial<typeof state>) => {
		held.current = { ...held.current, ...next };
		setState(held.current);
	};
	useEffect(() => {
		if (!running) return;
		const control = new AbortController();
		let timer: ReturnType<typeof setTimeout> | undefined;
		let failures = 0;
		const poll = async () => {
			try {
				const next = await once(wanted, held.current.tail, control.signal);
				if (control.signal.aborted) return;
				failures = 0;
				show({ tail: next(held.current.tail), error: undefined, retryAt: null });
				timer = setTimeout(poll, pace);
			} catch (error) {
				if (control.signal.aborted || isAbort(error)) return;
				const wait = waitAfter(error, ++failures);
				const again = canRetry(error);
				show({ error, retryAt: again ? Date.now() + wait : null });
				if (again) timer = setTimeout(poll, wait);
			}
		};
		poll();
		return () => {
			control.abort();
			clearTimeout(timer);
		};
	}, [key, running]);
	const { tail, error, retryAt } = state.key === key ? state : held.current;
	return { tail, error, retryAt };
}

const begin = (key: string) => ({ key, tail: nothing, error: undefined as unknown, retryAt: null as number | null });

/** Asks once, and says how what was received changes. */
async function once(wanted: Wanted, tail: Tail, signal: AbortSignal): Promise<(tail: Tail) => Tail> {
	const from = since(tail);
	const where = from === null ? wanted.where : [...(wanted.where ?? []), `created_at >= ${quotedTime(from)}`];
	const { rows, asOf } = await listEvents(
		{ ...wanted, where, before: new Date(Date.now() + 2 * 86_400_000).toISOString() },
		{ limit: most, by: "arrival", refresh: "force_blocking", signal },
	);
	return (now) => add(now, rows, asOf);
}

/** Whether the tab can be seen. */
function useVisible(): boolean {
	const [visible, setVisible] = useState(document.visibilityState === "visible");
	useEffect(() => {
		const changed = () => setVisible(document.visibilityState === "visible");
		document.addEventListener("visibilitychange", changed);
		return () => document.removeEventListener("visibilitychange", changed);
	}, []);
	return visible;
}
