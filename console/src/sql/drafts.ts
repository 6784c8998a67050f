import { parse, stringify } from "../api/json";
import type { ResultSettings } from "../charts/options/result";
import { storedFor } from "../session";

/** What a text comes from: a saved insight, the text of a link, or neither for the tab's own. */
export interface Origin {
	insight?: string | null;
	link?: string | null;
}

/** What is written on the page. */
export interface Written {
	text: string;
	/** The values of variables, by name. */
	given: Record<string, unknown>;
	/** The dates of `{filters}`. */
	dates: Record<string, unknown>;
	/** How the rows are drawn. */
	settings: ResultSettings;
}

/** What was changed in this tab and is not saved. */
interface Draft extends Written {
	of: string;
}

/** How many drafts are kept for each project. */
const most = 20;

const storedAt = () => storedFor("sql.drafts");

/** The name of an origin: two are the same if their names are. */
export function nameOf({ insight, link }: Origin): string {
	if (insight) return `insight ${insight}`;
	return link === null || link === undefined ? "" : `link ${link}`;
}

/** The draft of an origin, of which `nameOf` gives the name; null if there is none. */
export function draftOf(name: string): Written | null {
	const { of, ...written } = drafts().find((draft) => draft.of === name) ?? {};
	return of === undefined ? null : (written as Written);
}

/** Keeps a draft until the tab is closed. */
export function keepDraft(name: string, written: Written): void {
	keep([{ ...written, of: name }, ...others(name)].slice(0, most));
}

/** Forgets a draft. */
export function dropDraft(name: string): void {
	if (draftOf(name) !== null) keep(others(name));
}

const others = (name: string): Draft[] => drafts().filter((draft) => draft.of !== name);

function drafts(): Draft[] {
	try {
		const kept = parse(sessionStorage.getItem(storedAt()) ?? "[]");
		return Array.isArray(kept) ? kept.filter(isDraft) : [];
	} catch {
		return [];
	}
}

function isDraft(kept: Partial<Draft> | null): kept is Draft {
	if (typeof kept?.of !== "string" || typeof kept.text !== "string") return false;
	return [kept.given, kept.dates, kept.settings].every((fields) => typeof fields === "object" && fields !== null);
}

/** Keeps as many of the newest drafts as the browser has room for. */
function keep(all: Draft[]): void {
	for (let kept = all; ; kept = kept.slice(0, Math.floor(kept.length / 2))) {
		try {
			sessionStorage.setItem(storedAt(), stringify(kept));
			return;
		} catch {
			if (kept.length === 0) return;
		}
	}
}
