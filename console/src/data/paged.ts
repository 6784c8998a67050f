import { useState } from "preact/hooks";

/** The offset of a page of a list, which begins anew when `on` changes. */
export function useOffset(on: unknown): [number, (offset: number) => void] {
	const [at, setAt] = useState({ on, offset: 0 });
	return [Object.is(at.on, on) ? at.offset : 0, (offset) => setAt({ on, offset })];
}
