import type { Reference } from "../../data/references";

/** A cohort as the API has it: docs/cohorts.md. */
export interface Cohort {
	id: number;
	name: string | null;
	description: string;
	deleted: boolean;
	is_calculating: boolean;
	is_static: boolean;
	count: number | null;
	created_at: string;
	last_calculation: string | null;
	errors_calculating: number;
	last_error_message: string | null;
	filters?: unknown;
	query?: unknown;
	used_by?: Reference[];
	reference_count?: number;
}

export const nameOf = (cohort: Pick<Cohort, "id" | "name">): string => cohort.name || `Cohort ${cohort.id}`;
