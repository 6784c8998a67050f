import { storedFor } from "../session";

/** A query that was run in this browser. */
export interface Run {
	query: string;
	/** When, in milliseconds since 1970. */
	at: number;
	rows?: number;
	seconds?: number;
	error?: string;
}

/** How many runs are kept for each project. */
const most = 200;

const storedAt = () => storedFor("sql");

/** The runs of the project, newest first. */
export function history(): Run[] {
	try {
		const kept = JSON.parse(localStorage.getItem(storedAt()) ?? "[]");
		return Array.isArray(kept) ? kept.filter((run) => typeof run?.query === "string") : [];
	} catch {
		return [];
	}
}

/** Notes a run. One of the same text takes the place of the earlier. */
export function note(run: Run): void {
	keep([run, ...history().filter((before) => before.query !== run.query)].slice(0, most));
}

/** Forgets all runs of the project. */
export function forget(): void {
	localStorage.removeItem(storedAt());
}

/** Keeps as many of the newest runs as the browser has room for. */
function keep(runs: Run[]): void {
	for (let kept = runs; kept.length > 0; kept = kept.slice(0, Math.floor(kept.length / 2))) {
		try {
			localStorage.setItem(storedAt(), JSON.stringify(kept));
			return;
		} catch {
			// The browser's room is used up: half of them may fit.
		}
	}
}
