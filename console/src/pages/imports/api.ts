import { get, type Page, remove, send } from "../../api/client";

/** What an import did, or would do: docs/imports.md. */
export interface Report {
	files?: Report[];
	file?: string;
	format?: string;
	events: number;
	duplicates: number;
	first_timestamp?: string;
	last_timestamp?: string;
	persons: number;
	new_people: number;
	merged_people: number;
	groups: number;
	/** Events that were left out, because the project keeps none of their age. */
	too_old_events?: number;
	/** Persons of an export that were deleted there. */
	skipped?: number;
	/** Properties of people and groups that have as many as they can. */
	left_out_properties: number;
	/** The most frequent fields that became nothing. */
	unknown_fields: { name: string; lines: number; did_you_mean?: string }[] | null;
	/** Unknown fields that are not listed. */
	more_unknown_fields?: number;
	/** Columns that are no field, and became properties. */
	columns_as_properties?: string[];
	bad: number;
	bad_lines: { line: number; reason: string }[] | null;
	learned_properties: { name: string; as: string }[] | null;
}

export interface Import {
	id: string;
	status: "waiting" | "running" | "completed" | "failed" | "cancelled";
	filename: string;
	format: string;
	dry_run: boolean;
	size: number;
	/** Up to which line all are in. */
	line: number;
	events: number;
	created_at: string;
	finished_at: string | null;
	error: string;
	/** Null until it has ended. */
	report: Report | null;
}

/** What is asked of an import. */
export interface Wanted {
	file: Blob;
	filename: string;
	/** Empty: told from the file. */
	format: string;
	/** A column=field in each line. */
	map: string;
	dryRun: boolean;
}

export const formats = [
	{ value: "", label: "Told from the file" },
	{ value: "ndjson", label: "NDJSON" },
	{ value: "posthog", label: "PostHog export" },
	{ value: "mixpanel", label: "Mixpanel events" },
	{ value: "mixpanel-people", label: "Mixpanel profiles" },
	{ value: "amplitude", label: "Amplitude events" },
	{ value: "csv", label: "CSV" },
	{ value: "parquet", label: "Parquet" },
];

/** The fields of lines that were written. It throws an error that names a line that is none. */
export function readMap(text: string): string[] {
	const lines = text
		.split("\n")
		.map((line) => line.trim())
		.filter(Boolean);
	for (const line of lines) {
		const at = line.indexOf("=");
		if (at <= 0 || at === line.length - 1) throw new Error(`Write column=field, not “${line}”.`);
	}
	return lines;
}

/** The path that a file is sent to. */
export function addressOf({ filename, format, map, dryRun }: Omit<Wanted, "file">): string {
	const search = new URLSearchParams({ filename });
	if (format) search.set("format", format);
	if (dryRun) search.set("dry_run", "true");
	for (const one of readMap(map)) search.append("map", one);
	return `imports/?${search}`;
}

export const sendFile = async (wanted: Wanted): Promise<Import> =>
	(await send<Import>("POST", addressOf(wanted), { body: wanted.file })).data;

export const readImports = (limit: number, offset: number, signal: AbortSignal) => get<Page<Import>>("imports/", { limit, offset }, signal);

/** Cancels an import, and forgets one that has ended. */
export const removeImport = (one: Import) => remove(`imports/${one.id}/`);

/** Whether nothing more becomes of an import. */
export const hasEnded = ({ status }: Import): boolean => status !== "waiting" && status !== "running";

export function stateOf(one: Import): { tone: "good" | "warn" | "bad" | "plain"; words: string } {
	switch (one.status) {
		case "waiting":
			return { tone: "plain", words: "Waiting" };
		case "running":
			return { tone: "warn", words: "Running" };
		case "completed":
			return one.report?.bad ? { tone: "warn", words: "Completed, with bad lines" } : { tone: "good", words: "Completed" };
		case "failed":
			return { tone: "bad", words: "Failed" };
		case "cancelled":
			return { tone: "plain", words: "Canceled" };
	}
}
