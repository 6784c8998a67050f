import { text } from "./format";

/** Rows as CSV with a line of names. Texts that a spreadsheet would run as formulas get a quote before them; a negative number is none. */
export function csv(columns: readonly string[], rows: readonly (readonly unknown[])[]): string {
	return [columns, ...rows]
		.map((row) => row.map(cell).join(","))
		.join("\r\n")
		.concat("\r\n");
}

/** A negative number as a text, as the API has decimals. */
const negative = /^-\d+(\.\d+)?(e[+-]?\d+)?$/i;

function cell(value: unknown): string {
	const plain = text(value);
	const formula = typeof value === "string" && /^[=+\-@\t\r]/.test(plain) && !negative.test(plain);
	const safe = formula ? `'${plain}` : plain;
	return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Saves a text or bytes as a file of the browser's user. */
export function download(name: string, content: BlobPart, type: string): void {
	const address = URL.createObjectURL(new Blob([content], { type }));
	const link = document.createElement("a");
	link.href = address;
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(address), 1000);
}
