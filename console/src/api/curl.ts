import { session } from "../session";
import { stringify } from "./json";

/** The name of the environment variable that commands and programs read the key from. */
export const keyVariable = "ANALYTICS_KEY";

/** The address of a path below the project, as programs call it. */
export const addressOf = (path: string) => `${window.location.origin}/api/projects/${session.value?.project.id || "@current"}/${path}`;

/** A text in single quotes for a POSIX shell. */
export function quoteShell(text: string): string {
	return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A command line with curl that sends a body as JSON to an address; without a body, one that reads from it. */
export function curlCommand(url: string, body?: unknown, { pretty = false, more = "" } = {}): string {
	const lines = [`curl -sS --fail-with-body ${quoteShell(url)}`, `  -H "Authorization: Bearer $${keyVariable}"`];
	if (body !== undefined) {
		lines.push(`  -H 'Content-Type: application/json'`, `  -d ${quoteShell(stringify(body, pretty ? 2 : undefined))}`);
	}
	return lines.join(" \\\n") + more;
}
