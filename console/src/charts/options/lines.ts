import type { QueryNode, QueryResult } from "../../api/query";
import { trendActors } from "../behind";
import type { Behind } from "../model";
import { breakdownName, type Fields, fieldsOf, intervalOf, isWeekend, longDay } from "../values";

/** An item of the results of a trend: api.md, "Trends". */
export interface TrendItem {
	data: number[] | null;
	days: string[];
	labels?: string[];
	count: number;
	aggregated_value?: number | null;
	label: string;
	action: { order: number; name?: string | null; custom_name?: string | null; math?: string | null; math_property?: string | null } | null;
	order?: number;
	compare?: boolean;
	compare_label?: "current" | "previous";
	breakdown_value?: unknown;
	/** Of a slope: whether the last bucket goes on. */
	incomplete_end?: boolean;
}

/** A line of a trend, or one of its numbers. */
export interface Line {
	item: TrendItem;
	/** Its place in the legend. */
	place: number;
	name: string;
	/** The name without the series, where there is a breakdown. */
	value: string;
	series: string;
	colour: number;
	hidden: boolean;
	previous: boolean;
	days: string[];
	points: number[];
	/** The one number of displays of totals. */
	total: number;
	/** The dates that the result counts, where they are known. */
	range?: Range;
	/** The line of the current period that this one is compared with, and the other way round. */
	other?: Line;
}

interface Range {
	date_from: string;
	date_to: string;
}

/** The lines of a trend, named and coloured. */
export function readLines(query: QueryNode, result: QueryResult): Line[] {
	const items = (Array.isArray(result.results) ? result.results : []) as TrendItem[];
	const filter = fieldsOf(query, "trendsFilter");
	const several = new Set(items.map((item) => item.action?.order ?? `formula ${item.order}`)).size > 1;
	const names = namesOfSeries(items);
	const hidden = filter.hideWeekends === true && intervalOf(query) === "day" ? weekendsOf(items) : noPlaces;
	const current = new Map<string, Line>();
	const lines: Line[] = [];
	for (const [place, item] of items.entries()) {
		const previous = item.compare_label === "previous";
		const key = JSON.stringify([orderOf(item), item.breakdown_value]);
		const other = previous ? current.get(key) : undefined;
		const custom = customOf(item, place, filter);
		const series = names[place] ?? item.label;
		const broken = item.breakdown_value !== undefined;
		const value = broken ? valueName(item) : "";
		const full = !broken ? series : several ? `${series} · ${value}` : value;
		const line: Line = {
			item,
			place,
			name: previous ? `${full} (previous)` : full,
			value,
			series,
			colour: custom.colour ?? other?.colour ?? (previous ? place : current.size),
			hidden: custom.hidden,
			previous,
			...pointsOf(item, hidden),
			total: item.aggregated_value ?? 0,
			range: result.resolved_date_range as Range | undefined,
			other,
		};
		if (other) other.other = line;
		if (!previous) current.set(key, line);
		lines.push(line);
	}
	return lines;
}

/** The place of an item's series, or formula, in the query. Several may have the same name. */
export const orderOf = (item: TrendItem): number | undefined => item.action?.order ?? item.order;

const noPlaces: ReadonlySet<number> = new Set();

/** The places of weekends. A previous period is compared place by place, so those of the current one count for it, too. */
function weekendsOf(items: TrendItem[]): ReadonlySet<number> {
	const days = (items.find((item) => item.compare_label !== "previous") ?? items[0])?.days ?? [];
	return new Set(days.flatMap((day, i) => (isWeekend(day) ? [i] : [])));
}

/** The buckets of an item and its numbers in them, without some places. */
function pointsOf({ days, data }: TrendItem, without: ReadonlySet<number>): { days: string[]; points: number[] } {
	const shown = <T>(list: T[] | null | undefined) => (list ?? []).filter((_, i) => !without.has(i));
	return { days: shown(days), points: shown(data) };
}

/** The names of the items' series, with what they count where names alone are the same. */
function namesOfSeries(items: TrendItem[]): string[] {
	const plain = items.map((item) => (item.action ? item.action.custom_name || item.action.name || "All events" : item.label));
	const ordersOf = new Map<string, Set<unknown>>();
	for (const [i, item] of items.entries()) {
		if (!item.action) continue;
		const orders = ordersOf.get(plain[i] ?? "") ?? new Set();
		ordersOf.set(plain[i] ?? "", orders.add(item.action.order));
	}
	return items.map((item, i) => {
		const name = plain[i] ?? "";
		if (!item.action) return item.breakdown_value === undefined ? name : formulaName(item);
		return (ordersOf.get(name)?.size ?? 0) > 1 ? `${name} (${mathName(item.action.math, item.action.math_property)})` : name;
	});
}

/** The label of a formula's item ends with the value of the breakdown. */
function formulaName(item: TrendItem): string {
	const values = Array.isArray(item.breakdown_value) ? item.breakdown_value.join("::") : String(item.breakdown_value);
	return item.label.endsWith(` - ${values}`) ? item.label.slice(0, -values.length - 3) : `Formula ${(item.order ?? 0) + 1}`;
}

/** The value of a breakdown; a cohort's name is in the label alone. */
function valueName(item: TrendItem): string {
	const value = item.breakdown_value;
	if (typeof value !== "number" && value !== "all") return breakdownName(value);
	const name = item.action?.name ?? "";
	return item.label.startsWith(`${name} - `) ? item.label.slice(name.length + 3) : item.label;
}

const maths: Record<string, string> = {
	total: "count",
	dau: "unique people",
	weekly_active: "weekly active",
	monthly_active: "monthly active",
	unique_session: "unique sessions",
	unique_group: "unique groups",
	first_time_for_user: "first time",
	hogql: "expression",
};

function mathName(math: string | null | undefined, property: string | null | undefined): string {
	const name = maths[math ?? "total"] ?? String(math).replaceAll("_", " ");
	return property ? `${name} of ${property}` : name;
}

/** What resultCustomizations say of an item: its colour, and whether it is hidden. */
function customOf(item: TrendItem, place: number, filter: Fields): { colour?: number; hidden: boolean } {
	const all = fieldsOf(filter, "resultCustomizations");
	const key = filter.resultCustomizationBy === "position" ? String(place) : keyOf(item);
	const custom = fieldsOf(all, key);
	const preset = /^preset-(\d+)$/.exec(String(custom.color ?? ""));
	return { colour: preset ? Number(preset[1]) - 1 : undefined, hidden: custom.hidden === true };
}

/** How resultCustomizations name an item by what it is. */
export function keyOf(item: TrendItem): string {
	const order = item.order ?? 0;
	const value = item.breakdown_value;
	return JSON.stringify({
		series: item.action ? item.action.order : order > 0 ? `formula${order + 1}` : "formula",
		breakdown_value: value === undefined || Array.isArray(value) ? value : [value],
		compare_label: item.compare_label,
	});
}

/** What is behind a point of a line, or behind its total without one. Formulas have no actors. */
export function behindLine(query: QueryNode, line: Line, index?: number): Behind | undefined {
	const { action } = line.item;
	if (!action) return undefined;
	const day = index === undefined ? undefined : (line.other && line.previous ? line.other : line).days[index];
	if (index !== undefined && day === undefined) return undefined;
	const shown = index === undefined ? undefined : line.days[index];
	return {
		title: shown === undefined ? line.name : `${line.name}, ${longDay(shown, intervalOf(query))}`,
		source: trendActors(index === undefined ? query : cut(query, line, index), {
			series: action.order,
			day,
			breakdown: line.item.breakdown_value,
			compare: line.item.compare_label,
		}),
	};
}

/** The actors of a bucket are those of all its time. The first and the last one of a line may count a part of it: the insight's own dates cut them. */
function cut(query: QueryNode, line: Line, index: number): QueryNode {
	const whole = ["day", "hour", "minute", "second"].includes(intervalOf(query));
	const inside = index > 0 && index < line.days.length - 1;
	if (whole || inside || line.item.compare || !line.range) return query;
	const { date_from, date_to } = line.range;
	return { ...query, dateRange: { ...fieldsOf(query, "dateRange"), date_from, date_to, explicitDate: true } };
}

/** The same for a cell of a table. */
export const cellBehind = (query: QueryNode, line: Line, index?: number): (() => Behind) | undefined =>
	line.item.action ? () => behindLine(query, line, index) as Behind : undefined;
