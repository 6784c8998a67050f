import type { QueryNode } from "../api/query";
import { compact, duration, number, percent } from "../ui/format";

/** The fields of an object of a query, such as its trendsFilter. */
export type Fields = Record<string, unknown>;

/** An object in a query; empty if there is none. */
export function fieldsOf(node: Fields, name: string): Fields {
	const value = node[name];
	return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Fields) : {};
}

/** A list of objects in a query; empty if there is none. */
export function listOf(node: Fields, name: string): Fields[] {
	const value = node[name];
	return Array.isArray(value) ? (value as Fields[]) : [];
}

/** How the numbers of an insight are written: the fields of a trendsFilter. */
export interface ValueFormat {
	format: string;
	prefix: string;
	postfix: string;
	/** At most so many digits after the point. */
	decimals: number;
	minDecimals: number;
}

export function valueFormat(filter: Fields): ValueFormat {
	const decimals = typeof filter.decimalPlaces === "number" ? clampDigits(filter.decimalPlaces) : 2;
	const minimum = typeof filter.minDecimalPlaces === "number" ? clampDigits(filter.minDecimalPlaces) : 0;
	return {
		format: String(filter.aggregationAxisFormat ?? "numeric"),
		prefix: String(filter.aggregationAxisPrefix ?? ""),
		postfix: String(filter.aggregationAxisPostfix ?? ""),
		decimals: Math.max(decimals, minimum),
		minDecimals: minimum,
	};
}

const clampDigits = (digits: number): number => Math.max(0, Math.min(20, Math.trunc(digits)));

/** A number as the insight writes it. */
export function formatValue(value: number | null | undefined, f: ValueFormat): string {
	if (value === null || value === undefined || Number.isNaN(value)) return "–";
	return f.prefix + unit(value, f) + f.postfix;
}

/** A number for an axis, where room is short. */
export function formatAxis(value: number, f: ValueFormat): string {
	if (f.format === "numeric" && Math.abs(value) >= 10_000) return f.prefix + compact(value) + f.postfix;
	return formatValue(value, f);
}

const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD" });
const decimals = new Map<string, Intl.NumberFormat>();

/** What writes numbers with some digits after the point. Making one takes longer than using it. */
function decimal(f: ValueFormat): Intl.NumberFormat {
	const key = `${f.minDecimals}-${f.decimals}`;
	let made = decimals.get(key);
	if (!made) {
		made = new Intl.NumberFormat("en", { maximumFractionDigits: f.decimals, minimumFractionDigits: f.minDecimals });
		decimals.set(key, made);
	}
	return made;
}

function unit(value: number, f: ValueFormat): string {
	const plain = (v: number) => decimal(f).format(v);
	switch (f.format) {
		case "duration":
			return span(value);
		case "duration_ms":
			return span(value / 1e3);
		case "duration_ns":
			return span(value / 1e9);
		case "percentage":
			return `${plain(value)}%`;
		case "percentage_scaled":
			return `${plain(value * 100)}%`;
		case "currency":
			return dollars.format(value);
		case "short":
			return compact(value);
	}
	return plain(value);
}

/** Seconds as text, negative ones too. */
export function span(seconds: number): string {
	if (seconds === 0) return "0 s";
	return seconds < 0 ? `-${duration(-seconds)}` : duration(seconds);
}

/** A part of a whole as 12.3%; a dash where there is no whole. */
export function share(part: number, whole: number): string {
	return whole === 0 ? "–" : percent(part / whole);
}

/** A change since before as a share; null without anything before. */
export const changeOf = (now: number, before: number | undefined): number | null =>
	before === undefined || before === 0 ? null : (now - before) / Math.abs(before);

/** What stands for the values of a breakdown that are missing, and for the rest of them. */
export const nullValue = "$$_posthog_breakdown_null_$$";
export const otherValue = "$$_posthog_breakdown_other_$$";

/** The value of a breakdown as people read it. */
export function breakdownName(value: unknown): string {
	if (Array.isArray(value)) return value.map(breakdownName).join(" · ");
	if (value === null || value === undefined || value === "" || value === nullValue) return "None";
	if (value === otherValue) return "Other";
	const text = String(value);
	return rangeName(text) ?? text;
}

/** A range of a histogram, "[10,20]", as 10–20. */
function rangeName(text: string): string | undefined {
	const ends = /^\[("?)(-?[\d.e+]+)\1,\s*("?)(-?[\d.e+]+)\3\]$/i.exec(text);
	return ends ? `${number(Number(ends[2]))}–${number(Number(ends[4]))}` : undefined;
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** The parts of a day or a time of the API, such as "2026-08-01 14:00:00". They are those of the project's time zone. */
function parts(day: string): { year: number; month: number; date: number; clock: string; weekday: number } | undefined {
	const found = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?))?/.exec(day);
	if (!found) return undefined;
	const [year, month, date] = [Number(found[1]), Number(found[2]), Number(found[3])];
	return { year, month, date, clock: found[4] ?? "", weekday: new Date(Date.UTC(year, month - 1, date)).getUTCDay() };
}

/** Reports whether a day is a Saturday or a Sunday. */
export function isWeekend(day: string): boolean {
	const p = parts(day);
	return p !== undefined && (p.weekday === 0 || p.weekday === 6);
}

/** A bucket on an axis: 1 Aug, Aug 2026, 14:00. */
export function shortDay(day: string, interval: string): string {
	const p = parts(day);
	if (!p) return day;
	switch (interval) {
		case "year":
			return String(p.year);
		case "quarter":
			return `Q${Math.ceil(p.month / 3)} ${p.year}`;
		case "month":
			return `${months[p.month - 1]} ${p.year}`;
		case "hour":
		case "minute":
			return `${p.date} ${months[p.month - 1]} ${p.clock.slice(0, 5)}`;
		case "second":
			return p.clock;
	}
	return `${p.date} ${months[p.month - 1]}`;
}

/** A bucket in full: Sat, 1 Aug 2026; week of 2 Aug 2026; 1 Aug 2026, 14:00. */
export function longDay(day: string, interval: string): string {
	const p = parts(day);
	if (!p) return day;
	const date = `${p.date} ${months[p.month - 1]} ${p.year}`;
	if (interval === "day") return `${weekdays[p.weekday]}, ${date}`;
	if (interval === "week") return `week of ${date}`;
	if (interval === "second" || interval === "minute" || interval === "hour")
		return `${date}, ${p.clock.slice(0, interval === "second" ? 8 : 5)}`;
	return shortDay(day, interval);
}

/** The interval of a query. */
export const intervalOf = (query: QueryNode): string => String(query.interval ?? "day");

/** A text of at most so many characters, cut in its middle: names often differ at their ends. */
export function shorten(text: string, most: number): string {
	if (text.length <= most) return text;
	const head = Math.ceil((most - 1) / 2);
	return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}

/** A text that ECharts draws as it is: braces would begin a style. */
export const literal = (text: string): string => text.replace(/\{/g, "(").replace(/\}/g, ")");

/** Names as a list of a sentence, with the number of those left out. */
export function listed(names: readonly string[], most = 3): string {
	if (names.length <= most) return names.join(", ");
	return `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
}
