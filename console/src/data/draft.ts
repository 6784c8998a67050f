import { stringify } from "../api/json";

/** A draft once it is saved: what the server made of it, but for the fields that were changed after they were sent. */
export function afterSave<T extends object>(now: T, sent: T, saved: T): T {
	const changed = Object.entries(now).filter(([name, value]) => stringify(value) !== stringify(sent[name as keyof T]));
	return { ...saved, ...Object.fromEntries(changed) };
}
