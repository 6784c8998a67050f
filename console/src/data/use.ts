import { useMemo } from "preact/hooks";
import { parse, stringify } from "../api/json";
import { useSettled } from "../api/use";

/** A value of JSON once it has not changed for some milliseconds. It is the same object until then. */
export function useSettledJSON<T>(value: T, wait?: number): T {
	const text = useSettled(stringify(value), wait);
	return useMemo(() => parse(text) as T, [text]);
}
