const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });

/** 12,345.67 */
export const number = (value: number): string => plain.format(value);

/** 12.3K */
export const compact = (value: number): string => short.format(value);

/** A number with what it counts: "1 event", "2 events". A plural that is not the singular with an s is given. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${number(count)} ${count === 1 ? one : many}`;

/** A share between 0 and 1 as 12.3% */
export const percent = (share: number): string => `${plain.format(Math.round(share * 1000) / 10)}%`;

/** Seconds as 350 ms, 2.4 s, 3m 20s, 2h 5m or 3d 4h. */
export function duration(seconds: number): string {
	const milliseconds = tenths(seconds * 1000);
	if (milliseconds < 1000) return `${plain.format(milliseconds)} ms`;
	if (tenths(seconds) < 60) return `${plain.format(tenths(seconds))} s`;
	const whole = Math.max(60, Math.floor(seconds));
	const units: [string, number][] = [
		["d", 86400],
		["h", 3600],
		["m", 60],
		["s", 1],
	];
	const first = units.findIndex(([, size]) => whole >= size);
	const [unit, size] = units[first] ?? ["s", 1];
	const [nextUnit, nextSize] = units[first + 1] ?? ["", 0];
	const rest = nextSize ? Math.floor((whole % size) / nextSize) : 0;
	return `${Math.floor(whole / size)}${unit}${rest ? ` ${rest}${nextUnit}` : ""}`;
}

/** Bytes as 12 B, 3.4 kB, 5.6 MB. */
export function bytes(size: number): string {
	const units = ["B", "kB", "MB", "GB", "TB"];
	let unit = 0;
	let value = size;
	for (; tenths(value) >= 1000 && unit < units.length - 1; unit++) value /= 1000;
	return `${plain.format(tenths(value))} ${units[unit]}`;
}

/** A number with one digit after the point. */
const tenths = (value: number): number => Math.round(value * 10) / 10;

/** How long ago a time was, such as "3h ago"; "never" when there is none. */
export function ago(time: string | null | undefined, now = Date.now()): string {
	if (!time) return "never";
	const seconds = (new Date(time).getTime() - now) / 1000;
	if (Number.isNaN(seconds)) return time;
	const units: [Intl.RelativeTimeFormatUnit, number][] = [
		["year", 31536000],
		["month", 2592000],
		["day", 86400],
		["hour", 3600],
		["minute", 60],
	];
	for (const [unit, size] of units) {
		if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
	}
	return Math.abs(seconds) < 5 ? "now" : relative.format(Math.trunc(seconds), "second");
}

/** Any value of an answer as a text: objects as JSON, nothing as an empty text. */
export function text(value: unknown): string {
	if (value === null || value === undefined) return "";
	return typeof value === "object" ? JSON.stringify(value) : String(value);
}
