import { signal } from "@preact/signals";

/** What the API says of the key's project: contract section 4. Keys without `project:read` know its number and name alone. */
export interface Project {
	id: number;
	name: string;
	timezone?: string;
	api_token?: string;
	week_start_day?: number | null;
}

/** A key in use. Only this tab has it. */
export interface Session {
	key: string;
	label: string;
	scopes: string[];
	expiresAt?: string;
	/** Whether a link made the key, so that signing out revokes it. */
	own: boolean;
	/** The organization of the project, which is in it alone. It is known to keys without `project:read`, too. */
	organization: string;
	project: Project;
}

/** What a tab keeps of its session. */
export type Kept = Pick<Session, "key" | "own" | "expiresAt">;

/** The session of this tab; null before signing in. */
export const session = signal<Session | null>(null);

/** Why the last session ended, for the form that asks for a key. */
export const sessionEnded = signal("");

/** How much of the page would be lost without it. */
export const unsaved = signal(0);

/** Where the tab keeps its key, so that a reload does not sign out. */
const storedAt = "analytics.session";

/** Where the browser keeps something of the key's project. */
export const storedFor = (what: string): string => `analytics.${what}.${session.value?.organization ?? ""}`;

/** Reports whether the key may do what a scope such as "insight:write" says. Writing includes reading. */
export function can(scope: string): boolean {
	const held = session.value?.scopes ?? [];
	const [object, action] = scope.split(":");
	return held.some((s) => s === "*" || s === scope || s === `${object}:*` || (action === "read" && s === `${object}:write`));
}

/** Uses a key from now on, and keeps it for the tab. */
export function open(next: Session): void {
	sessionEnded.value = "";
	session.value = next;
	keep(next);
}

/** Keeps a key for the tab, whether it can be used yet or not. */
export function keep({ key, own, expiresAt }: Kept): void {
	try {
		sessionStorage.setItem(storedAt, JSON.stringify({ key, own, expiresAt }));
	} catch {
		// The browser keeps nothing: a reload signs out.
	}
}

/** Forgets the key. `why` is shown in the form that asks for another. */
export function close(why = ""): void {
	sessionEnded.value = why;
	session.value = null;
	try {
		sessionStorage.removeItem(storedAt);
	} catch {
		// Then it kept nothing.
	}
}

/** Forgets a key that no longer works. A page with something unsaved stays, so that it can be saved with another key. */
export function end(): void {
	const why = "Your session has ended. Sign in again.";
	if (unsaved.value > 0) sessionEnded.value = why;
	else close(why);
}

/** The key that this tab had before a reload. */
export function stored(): Kept | null {
	try {
		const kept = JSON.parse(sessionStorage.getItem(storedAt) ?? "null");
		return typeof kept?.key === "string" ? { key: kept.key, own: kept.own === true, expiresAt: kept.expiresAt } : null;
	} catch {
		return null;
	}
}
