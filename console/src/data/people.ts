import { ApiError, get } from "../api/client";
import { isUUID } from "./hogql";

/** A person as lists have them: docs/api.md. */
export interface Person {
	id: string;
	uuid: string;
	name: string | null;
	distinct_ids: string[];
	properties: Record<string, unknown>;
	created_at: string | null;
	is_identified?: boolean;
	/** Of one person alone. */
	last_seen_at?: string | null;
}

/** What a person is called. */
export function nameOf(person: Pick<Person, "name" | "distinct_ids" | "uuid">): string {
	return person.name || person.distinct_ids[0] || person.uuid;
}

const readPerson = (uuid: string, signal?: AbortSignal): Promise<Person> => get<Person>(`persons/${uuid}/`, {}, signal);

/** A person by their UUID or one of their distinct ids. */
export async function findPerson(id: string, signal?: AbortSignal): Promise<Person> {
	if (isUUID(id)) {
		try {
			return await readPerson(id, signal);
		} catch (error) {
			if (!(error instanceof ApiError) || error.status !== 404) throw error;
		}
	}
	const { results } = await get<{ results: Person[] }>("persons/", { distinct_id: id, limit: 1 }, signal);
	const [found] = results;
	if (!found)
		throw new ApiError(404, "not_found", `There is no person with the ID “${id}”. Events that were sent without a profile have none.`);
	return await readPerson(found.uuid, signal);
}
