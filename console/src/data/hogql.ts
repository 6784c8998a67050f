/** A text as a constant of HogQL. */
export function quoted(text: string): string {
	return `'${text.replace(/\\/g, "\\\\").replace(/'/g, "\\'")}'`;
}

/** A time in microseconds since 1970 as a constant of HogQL. */
export function quotedTime(micros: number): string {
	const seconds = new Date(Math.floor(micros / 1_000_000) * 1000).toISOString().slice(0, 19).replace("T", " ");
	const fraction = String(micros % 1_000_000).padStart(6, "0");
	return `toDateTime64('${seconds}.${fraction}', 6, 'UTC')`;
}

/** Reports whether a text is a UUID. */
export function isUUID(text: string): boolean {
	return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
