/** What stands before the digits of a long number while it is a text. Nobody else knows it, so that no text of a project begins with it. */
const mark = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");

const marked = new RegExp(`"${mark}(-?\\d+)"`, "g");

/** The texts and numbers of JSON. */
const values = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/**
 * Reads JSON without rounding: a whole number that a number cannot hold becomes a bigint with its digits. All else is as JSON.parse reads
 * it.
 */
export function parse(text: string): unknown {
	const plain: unknown = JSON.parse(text);
	if (!/\d{16}/.test(text)) return plain;
	let found = false;
	const safe = text.replace(values, (value) => {
		if (!/^-?\d{16,}$/.test(value) || Number.isSafeInteger(Number(value))) return value;
		found = true;
		return `"${mark}${value}"`;
	});
	if (!found) return plain;
	return JSON.parse(safe, (_, value: unknown) =>
		typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
	);
}

/** Writes JSON in which a bigint is a number with all of its digits. */
export function stringify(value: unknown, indent?: number): string {
	const text: string | undefined = JSON.stringify(
		value,
		function (this: Record<string, unknown>, name: string, written: unknown) {
			const whole = this[name];
			return typeof whole === "bigint" ? mark + whole : written;
		},
		indent,
	);
	return text?.replace(marked, "$1");
}

/** The number that a text stands for; a whole one that a number cannot hold is a bigint. Null for a text that is none. */
export function readNumber(text: string): number | bigint | null {
	const digits = text.trim();
	const nearest = Number(digits);
	if (digits === "" || !Number.isFinite(nearest)) return null;
	return /^-?\d+$/.test(digits) && !Number.isSafeInteger(nearest) ? BigInt(digits) : nearest;
}

/** A value of JSON with the nearest number in place of each bigint, for what only draws it. */
export function rounded(value: unknown): unknown {
	if (typeof value === "bigint") return Number(value);
	if (Array.isArray(value)) return value.map(rounded);
	if (typeof value !== "object" || value === null) return value;
	return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, rounded(member)]));
}

const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };

/**
 * What JSON.stringify writes of a bigint, which it would refuse: its digits, or in browsers that cannot write them the nearest number. What
 * is kept or sent is written by stringify.
 */
function toJSON(this: bigint): unknown {
	return rawJSON ? rawJSON(String(this)) : Number(this);
}

// oxlint-disable-next-line no-extend-native -- JSON.stringify has no other way to write a bigint
Object.defineProperty(BigInt.prototype, "toJSON", { value: toJSON, configurable: true, writable: true });
