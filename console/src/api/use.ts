import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { isAbort } from "./client";

/** Something that is being loaded. While it loads again, `data` is what there was before. */
export interface Resource<T> {
	data: T | undefined;
	error: unknown;
	loading: boolean;
	/** Loads it again. */
	reload: () => void;
	/** Replaces what is shown, for example by the answer to a change. A load that is under way is given up: it may be of before. */
	set: (data: T) => void;
}

/** Loads something when the component appears and whenever `on` changes. What is no longer wanted is given up. */
export function useResource<T>(load: (signal: AbortSignal) => Promise<T>, on: readonly unknown[]): Resource<T> {
	const [state, setState] = useState<{ data?: T; error?: unknown; loading: boolean }>({ loading: true });
	const [turn, setTurn] = useState(0);
	const latest = useRef(load);
	latest.current = load;
	const control = useRef<AbortController | null>(null);
	useEffect(() => {
		const own = new AbortController();
		control.current = own;
		setState((before) => ({ ...before, loading: true }));
		latest.current(own.signal).then(
			(data) => {
				if (!own.signal.aborted) setState({ data, loading: false });
			},
			(error) => {
				if (!own.signal.aborted && !isAbort(error)) setState((before) => ({ data: before.data, error, loading: false }));
			},
		);
		return () => own.abort();
	}, [...on, turn]);
	return {
		data: state.data,
		error: state.error,
		loading: state.loading,
		reload: useCallback(() => setTurn((n) => n + 1), []),
		set: useCallback((data: T) => {
			control.current?.abort();
			setState({ data, loading: false });
		}, []),
	};
}

/** Loads something again and again, as long as `on` holds: some milliseconds after each answer, and never while the page is hidden. */
export function usePoll<T>(of: Resource<T>, wait: number, on = true): void {
	useEffect(() => {
		if (!on || of.loading) return;
		const shown = new AbortController();
		const timer = setTimeout(() => {
			if (document.hidden) document.addEventListener("visibilitychange", of.reload, { once: true, signal: shown.signal });
			else of.reload();
		}, wait);
		return () => {
			clearTimeout(timer);
			shown.abort();
		};
	}, [on, wait, of.loading, of.data, of.error]);
}

/** A value once it has not changed for some milliseconds. */
export function useSettled<T>(value: T, wait = 250): T {
	const [settled, setSettled] = useState(value);
	useEffect(() => {
		const timer = setTimeout(() => setSettled(value), wait);
		return () => clearTimeout(timer);
	}, [value, wait]);
	return settled;
}
