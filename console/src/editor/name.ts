import { useResource } from "../api/use";

/** The name of what a key such as an id stands for. It is empty until it is known, and when it cannot be loaded. */
export function useName(key: string, load: (signal: AbortSignal) => Promise<string>): string {
	const found = useResource(async (signal) => ({ key, name: key ? await load(signal) : "" }), [key]);
	return found.data?.key === key ? found.data.name : "";
}
