import { get, type Page } from "../../api/client";

/** How far the deletion of a person, or of their events, is: docs/data-care.md. */
export interface Deletion {
	id: string;
	person_uuid: string;
	status: "pending" | "completed";
	created_at: string;
	/** Since when no answer shows it; null until then. */
	hidden_at: string | null;
	/** Since when nothing is left on the disk; null until then. */
	delete_verified_at: string | null;
	person_deleted: boolean;
	events_deleted: boolean;
	distinct_ids: number;
	event_count: number;
}

export const readDeletions = (limit: number, offset: number, signal: AbortSignal) =>
	get<Page<Deletion>>("persons/deletion_status/", { limit, offset }, signal);

/** What is deleted, in words. */
export function whatOf(d: Deletion): string {
	if (!d.person_deleted) return "Events";
	return d.events_deleted ? "Person and events" : "Person";
}

/** How far a deletion is, in words. */
export function stateOf(d: Deletion): { tone: "good" | "warn"; words: string } {
	if (d.status === "completed") return { tone: "good", words: "Erased" };
	return { tone: "warn", words: d.hidden_at ? "Hidden, on disk until it is erased" : "Being hidden" };
}
