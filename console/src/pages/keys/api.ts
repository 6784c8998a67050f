import { get, type Page, patch, post, remove } from "../../api/client";
import { parse, stringify } from "../../api/json";

interface KeyRecord {
	id: string;
	label: string;
	/** The key itself, only right after it was made or rolled. */
	value: string | null;
	mask_value: string;
	created_at: string;
	last_used_at: string | null;
	last_rolled_at: string | null;
	scopes: string[];
	/** Values that every run with the key has. */
	fixed: Record<string, unknown> | null;
	/** The endpoints that it can run; null for all. */
	endpoints: string[] | null;
}

/** A personal key. */
export interface PersonalKey extends KeyRecord {
	expires_at: string | null;
	is_current: boolean;
	is_session: boolean;
	is_expired: boolean;
	/** The key that this one ends with. */
	parent: string | null;
	/** What the key of this session may do with it. */
	can: ("change" | "roll" | "revoke")[];
}

/** A key that can only run endpoints. */
export type SecretKey = KeyRecord & { created_by: { first_name: string; email: string } | null };

/** The lists of keys, by their path below the project. */
export const personalKeys = "personal_api_keys/";
export const secretKeys = "project_secret_api_keys/";

export const readKeys = <T>(path: string, offset: number, limit: number, signal?: AbortSignal) =>
	get<Page<T>>(path, { limit, offset }, signal);
export const makeKey = <T>(path: string, body: Record<string, unknown>) => post<T>(path, body);
export const changeKey = <T>(path: string, id: string, body: Record<string, unknown>) =>
	patch<T>(`${path}${encodeURIComponent(id)}/`, body);
export const rollKey = <T>(path: string, id: string) => post<T>(`${path}${encodeURIComponent(id)}/roll/`);
export const revokeKey = (path: string, id: string) => remove(`${path}${encodeURIComponent(id)}/`);

/** Reads values that a key fixes: a line of `name = value` for each. A value that is JSON is that value, any other a text. */
export function readFixed(text: string): Record<string, unknown> {
	const fixed: Record<string, unknown> = {};
	for (const line of text.split("\n")) {
		if (!line.trim()) continue;
		const at = line.indexOf("=");
		const name = at < 0 ? "" : line.slice(0, at).trim();
		if (!name) throw new Error(`“${line.trim()}” is not a variable and its value: write name = value.`);
		if (Object.hasOwn(fixed, name)) throw new Error(`The variable ${name} is there twice.`);
		fixed[name] = valueOf(line.slice(at + 1).trim());
	}
	return fixed;
}

function valueOf(text: string): unknown {
	try {
		return parse(text);
	} catch {
		return text;
	}
}

/** What a key is bound to, in a few words; empty for a key that is not. */
export function boundTo({ fixed, endpoints }: Pick<KeyRecord, "fixed" | "endpoints">): string {
	const values = Object.entries(fixed ?? {}).map(([name, value]) => `${name} = ${typeof value === "string" ? value : stringify(value)}`);
	const runs = endpoints && endpoints.length > 0 ? [`only ${endpoints.join(", ")}`] : [];
	return [...values, ...runs].join("; ");
}
