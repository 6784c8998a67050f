import { type Fields, textOf, withFields } from "./json";

/** The times that a query looks at: docs/insights.md, "What all of them share". */
export type DateRangeFields = Fields;

/** A range that people choose by its name. */
export interface Preset {
	id: string;
	label: string;
	from: string | null;
	to: string | null;
}

export const presets: Preset[] = [
	{ id: "default", label: "Last 7 days (default)", from: null, to: null },
	{ id: "today", label: "Today", from: "dStart", to: null },
	{ id: "yesterday", label: "Yesterday", from: "-1dStart", to: "-1dEnd" },
	{ id: "-1h", label: "Last hour", from: "-1h", to: null },
	{ id: "-24h", label: "Last 24 hours", from: "-24h", to: null },
	{ id: "-7d", label: "Last 7 days", from: "-7d", to: null },
	{ id: "-14d", label: "Last 14 days", from: "-14d", to: null },
	{ id: "-30d", label: "Last 30 days", from: "-30d", to: null },
	{ id: "-90d", label: "Last 90 days", from: "-90d", to: null },
	{ id: "-180d", label: "Last 180 days", from: "-180d", to: null },
	{ id: "-12m", label: "Last 12 months", from: "-12m", to: null },
	{ id: "month", label: "This month", from: "mStart", to: null },
	{ id: "lastMonth", label: "Previous month", from: "-1mStart", to: "-1mEnd" },
	{ id: "year", label: "This year", from: "yStart", to: null },
	{ id: "lastYear", label: "Previous year", from: "-1yStart", to: "-1yEnd" },
	{ id: "all", label: "All time", from: "all", to: null },
];

/** How a range is edited: by its name, as a number of units up to now, between two days, or as text. */
export type RangeMode = "preset" | "relative" | "absolute" | "text";

export const units = [
	{ value: "s", label: "seconds" },
	{ value: "M", label: "minutes" },
	{ value: "h", label: "hours" },
	{ value: "d", label: "days" },
	{ value: "w", label: "weeks" },
	{ value: "m", label: "months" },
	{ value: "q", label: "quarters" },
	{ value: "y", label: "years" },
];

const relative = /^-(\d{1,5})([sMhdwmqy])$/;
const day = /^\d{4}-\d{2}-\d{2}$/;
const moment = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2})?$/;

/** The number and the unit of a relative date such as -30d; null for another one. */
export function readRelative(text: string): { count: number; unit: string } | null {
	const found = relative.exec(text);
	return found ? { count: Number(found[1]), unit: found[2] as string } : null;
}

/**
 * What follows the last day of a range between two days. A day alone is its first moment where time is cut into hours or less, and in
 * `{filters}` of SQL, so the day itself would be left out.
 */
const endOfDay = "T23:59:59.999999";

/** The last day of a range, for a field that holds a day; another end as it is. */
export const lastDay = (to: string): string => (isDay(to.slice(0, 10)) && to.slice(10) === endOfDay ? to.slice(0, 10) : to);

/** A range from one day to the end of another one, or without an end. */
export function withDays(range: DateRangeFields, from: string, to: string): DateRangeFields {
	return withEnds(range, from, isDay(to) ? to + endOfDay : to || null);
}

/** A range with its whole last day, for intervals that would cut it off; the same range if it has that already. */
export function withWholeDays(range: DateRangeFields, interval: string): DateRangeFields {
	const to = textOf(range.date_to);
	if (!(interval in lengths) || interval === "day" || range.explicitDate === true || !isDay(to)) return range;
	return withEnds(range, textOf(range.date_from) || null, to + endOfDay);
}

const isDay = (text: string) => day.test(text);
const isMoment = (text: string) => moment.test(text);
const bound = (value: unknown) => textOf(value) || null;

/** The named range that a query has; undefined for another one. */
export function presetOf(range: DateRangeFields): Preset | undefined {
	if (range.explicitDate === true) return undefined;
	return presets.find((p) => p.from === bound(range.date_from) && p.to === bound(range.date_to));
}

/** How a range can be edited. */
export function modeOf(range: DateRangeFields): RangeMode {
	if (presetOf(range)) return "preset";
	return fits(range, "relative") ? "relative" : fits(range, "absolute") ? "absolute" : "text";
}

/** Reports whether a range can be shown in a mode without losing anything. */
export function fits(range: DateRangeFields, mode: RangeMode): boolean {
	const [from, to] = [textOf(range.date_from), lastDay(textOf(range.date_to))];
	switch (mode) {
		case "preset":
			return presetOf(range) !== undefined;
		case "relative":
			return to === "" && readRelative(from) !== null;
		case "absolute":
			return withTimes(range) ? [from, to].every((t) => t === "" || isMoment(t)) && from !== "" : isDay(from) && (to === "" || isDay(to));
		case "text":
			return true;
	}
}

/** Reports whether the ends of a range are times of day. */
export const withTimes = (range: DateRangeFields): boolean => isMoment(textOf(range.date_from)) || isMoment(textOf(range.date_to));

/** A range with other ends. Null takes an end out. */
export function withEnds(range: DateRangeFields, from: string | null, to: string | null): DateRangeFields {
	return withFields(range, { date_from: from ?? undefined, date_to: to ?? undefined });
}

/** The range that a mode begins with. */
export function startOf(mode: RangeMode, range: DateRangeFields, today: string): DateRangeFields {
	if (fits(range, mode)) return range;
	switch (mode) {
		case "relative":
			return withEnds(range, "-30d", null);
		case "absolute":
			return withDays(range, `${today.slice(0, 8)}01`, today);
		default:
			return range;
	}
}

/** A range whose ends are times of day, or days. */
export function setTimes(range: DateRangeFields, on: boolean): DateRangeFields {
	const [from, to] = [textOf(range.date_from).slice(0, 10), textOf(range.date_to).slice(0, 10)];
	if (!on) return withFields(withDays(range, from, to), { explicitDate: undefined });
	return withFields(withEnds(range, `${from}T00:00:00`, to ? `${to}T23:59:59` : null), { explicitDate: true });
}

/** The intervals that time is cut into. */
export const intervals = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"].map((value) => ({ value, label: value }));

/** The most parts that a range can be cut into. */
const mostBuckets = 10_000;

const hours: Record<string, number> = { s: 1 / 3600, M: 1 / 60, h: 1, d: 24, w: 168, m: 730, q: 2184, y: 8766 };
const lengths: Record<string, number> = { second: 1 / 3600, minute: 1 / 60, hour: 1, day: 24 };

/** Reports whether an interval cuts a range into more parts than there may be. Where the range is not known it does not. */
export function tooFine(range: DateRangeFields, interval: string): boolean {
	const length = lengths[interval];
	const whole = hoursOf(range);
	return length !== undefined && whole !== null && whole / length > mostBuckets;
}

/** About how many hours a range has; null where that is not known. */
function hoursOf(range: DateRangeFields): number | null {
	const [from, to] = [textOf(range.date_from), textOf(range.date_to)];
	if (from === "" && to === "") return 7 * 24;
	const ago = to === "" ? readRelative(from) : null;
	if (ago) return ago.count * (hours[ago.unit] ?? 0);
	if (!fits(range, "absolute") || !to) return null;
	return (Date.parse(to.length > 10 ? to : `${to}T24:00:00`) - Date.parse(from.length > 10 ? from : `${from}T00:00:00`)) / 3_600_000;
}

/** Reports whether a text can be a date of a query: ISO 8601, or relative such as -7d. */
export function isDate(text: string): boolean {
	return /^(\d{4}-\d{1,2}-\d{1,2}([T ].+)?|-?\d{0,6}[sMhdwmqy](Start|End)?|today|now)$/.test(text.trim());
}
