import { useMemo } from "preact/hooks";
import { useSettled } from "../api/use";

/** A value of JSON once it has not changed for some milliseconds. It is the same object until then. */
export function useSettledJSON<T>(value: T, wait?: number): T {
	const text = useSettled(JSON.stringify(value), wait);
	return useMemo(() => JSON.parse(text) as T, [text]);
}
