import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { session } from "./session";

/** Where the page is: the path and the query string of its address. */
export const place = signal(here());

function here() {
	return { path: window.location.pathname, search: window.location.search };
}

/** Something of the page that would be lost. */
export interface Guard {
	/** Asked before it is left: it calls `go`, now or later, if that may be. */
	ask: (go: () => void) => void;
	/** Whether it is lost in another tab of the page, too, which is in the query string. */
	tab: boolean;
	/** Whether it lies over the page, as a form does: then the page is asked as well. */
	over?: boolean;
}

/** What the page would lose; the last is asked first. */
export const guards = signal<readonly Guard[]>([]);

/** What would be lost at another place. */
function lostAt(next: { path: string; search: string }): Guard[] {
	const away = next.path !== place.value.path;
	return guards.value.filter((guard) => away || (guard.tab && next.search !== place.value.search));
}

/** Goes, if what would be lost may be. */
function askAll(lost: readonly Guard[], go: () => void): void {
	const guard = lost.at(-1);
	if (guard) guard.ask(guard.over ? () => askAll(lost.slice(0, -1), go) : go);
	else go();
}

/** Which entry of the history is shown. Entries carry their numbers, which rise by one: the browser does not say how far it has gone. */
let entry = numbered(0);

/** The number of the browser's entry. One that has none gets one: it is the first of the page, or the browser added it for a fragment. */
function numbered(otherwise: number): number {
	const at: unknown = window.history.state?.entry;
	if (typeof at === "number") return at;
	window.history.replaceState({ entry: otherwise }, "");
	return otherwise;
}

/** What is done when the browser has come back to the entry that is shown. */
let returned: (() => void) | null = null;

/** Whether the next step through the history was allowed. */
let sureStep = false;

window.addEventListener("popstate", () => {
	const at = numbered(entry + 1);
	const sure = sureStep;
	sureStep = false;
	if (returned && at === entry) {
		const then = returned;
		returned = null;
		then();
		return;
	}
	const next = here();
	const steps = at - entry;
	const lost = sure || steps === 0 ? [] : lostAt(next);
	if (lost.length === 0) {
		entry = at;
		place.value = next;
		return;
	}
	returned = () =>
		askAll(lost, () => {
			sureStep = true;
			window.history.go(steps);
		});
	window.history.go(-steps);
});

/** Does what ends the page, such as signing out, if what would be lost may be. */
export function leave(go: () => void): void {
	askAll(guards.value, go);
}

/** Goes to an address of this site. `replace` leaves no entry in the history; `sure` leaves the page without asking it. */
export function navigate(to: string, { replace = false, sure = false } = {}): void {
	if (to === window.location.pathname + window.location.search) return;
	const { pathname: path, search } = new URL(to, window.location.href);
	const lost = sure ? [] : lostAt({ path, search });
	if (lost.length > 0) {
		askAll(lost, () => navigate(to, { replace, sure: true }));
		return;
	}
	if (!replace) entry++;
	if (replace) window.history.replaceState({ entry }, "", to);
	else window.history.pushState({ entry }, "", to);
	const before = place.value.path;
	place.value = here();
	if (!replace && before !== place.value.path) window.scrollTo(0, 0);
}

/** The address of a page of the project: pageAddress("insights", id) is /project/1/insights/… */
export function pageAddress(...parts: (string | number)[]): string {
	return ["", "project", session.value?.project.id || "@current", ...parts.map((part) => encodeURIComponent(part))].join("/");
}

/** A path with a query string of those fields that have a value. */
export function withSearch(path: string, fields: Record<string, string>): string {
	const search = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ""));
	return search.size ? `${path}?${search}` : path;
}

/** The values of a pattern such as "dashboard/:id" in the rest of a path, decoded; null when it does not match. */
export function match(pattern: string, path: string): Record<string, string> | null {
	const wanted = pattern.split("/");
	const given = path.split("/");
	if (wanted.length !== given.length) return null;
	const values: Record<string, string> = {};
	for (const [i, part] of wanted.entries()) {
		const value = decoded(given[i] ?? "");
		if (part.startsWith(":")) {
			if (!value) return null;
			values[part.slice(1)] = value;
		} else if (part !== value) return null;
	}
	return values;
}

/** A part of a path as it was before it was encoded; one that cannot be decoded stays as it is. */
function decoded(part: string): string {
	try {
		return decodeURIComponent(part);
	} catch {
		return part;
	}
}

/** What follows /project/:id/ in the page's path, still encoded: a value may hold a slash. */
export function projectPath(path: string): string {
	return /^\/project\/[^/]+\/?(.*?)\/?$/.exec(path)?.[1] ?? "";
}

/** Reports whether a path names another project than the key's. That is unknown of a key that may not read its project. */
export function ofAnotherProject(path: string): boolean {
	const own = session.value?.project.id;
	const named = /^\/project\/([^/]+)/.exec(path)?.[1];
	return Boolean(own) && named !== undefined && named !== "@current" && named !== String(own);
}

type LinkProps = Omit<JSX.AnchorHTMLAttributes<HTMLAnchorElement>, "href"> & { to: string; children?: ComponentChildren };

/** A link to a page of the console. With a modifier key or another button the browser opens it as any link. */
export function Link({ to, onClick, ...rest }: LinkProps) {
	return (
		<a
			{...rest}
			href={to}
			onClick={(event) => {
				onClick?.(event);
				if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
				event.preventDefault();
				navigate(to);
			}}
		/>
	);
}
