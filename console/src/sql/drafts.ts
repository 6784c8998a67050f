import { session } from "../session";

/** What a text comes from: a saved insight, the text of a link, or neither for the tab's own. */
export interface Origin {
	insight?: string | null;
	link?: string | null;
}

/** A text that was changed in this tab and is not saved. */
interface Draft {
	of: string;
	text: string;
}

/** How many drafts are kept for each project. */
const most = 20;

const storedAt = () => `analytics.sql.drafts.${session.value?.project.id ?? 0}`;

/** The name of an origin: two are the same if their names are. */
export function nameOf({ insight, link }: Origin): string {
	if (insight) return `insight ${insight}`;
	return link === null || link === undefined ? "" : `link ${link}`;
}

/** The draft of an origin, of which `nameOf` gives the name; null if there is none. */
export function draftOf(name: string): string | null {
	return drafts().find((draft) => draft.of === name)?.text ?? null;
}

/** Keeps a draft until the tab is closed. */
export function keepDraft(name: string, text: string): void {
	keep([{ of: name, text }, ...others(name)].slice(0, most));
}

/** Forgets a draft. */
export function dropDraft(name: string): void {
	if (draftOf(name) !== null) keep(others(name));
}

const others = (name: string): Draft[] => drafts().filter((draft) => draft.of !== name);

function drafts(): Draft[] {
	try {
		const kept = JSON.parse(sessionStorage.getItem(storedAt()) ?? "[]");
		return Array.isArray(kept) ? kept.filter((draft) => typeof draft?.of === "string" && typeof draft.text === "string") : [];
	} catch {
		return [];
	}
}

/** Keeps as many of the newest drafts as the browser has room for. */
function keep(all: Draft[]): void {
	for (let kept = all; ; kept = kept.slice(0, Math.floor(kept.length / 2))) {
		try {
			sessionStorage.setItem(storedAt(), JSON.stringify(kept));
			return;
		} catch {
			if (kept.length === 0) return;
		}
	}
}
