import type { QueryNode, QueryResult } from "../../api/query";
import { counted, number } from "../../ui/format";
import { funnelActors, funnelTrendActors } from "../behind";
import { emptyPicture, type Cell, type Picture, type Reference, type Step, type StepBar } from "../model";
import { goesOn } from "../progress";
import { breakdownName, fieldsOf, intervalOf, listOf, longDay, share, shortDay, span } from "../values";
import { plain, simplePicture } from "./simple";

interface StepItem {
	name: string;
	custom_name?: string | null;
	order: number;
	count: number;
	average_conversion_time: number | null;
	median_conversion_time: number | null;
	breakdown?: unknown;
	breakdown_value?: unknown;
}

/** A FunnelsQuery: its steps, its trend or the time that it takes. */
export function funnelPicture(query: QueryNode, result: QueryResult): Picture {
	const filter = fieldsOf(query, "funnelsFilter");
	if (filter.funnelVizType === "trends") return trendPicture(query, result);
	if (filter.funnelVizType === "time_to_convert") return timePicture(result);
	return stepsPicture(query, result);
}

/** The results as one list of steps for each value of the breakdown. */
function readSteps(result: QueryResult): StepItem[][] {
	const given = result.results;
	if (!Array.isArray(given)) return [];
	return (given.length > 0 && Array.isArray(given[0]) ? given : [given]) as StepItem[][];
}

function stepsPicture(query: QueryNode, result: QueryResult): Picture {
	const filter = fieldsOf(query, "funnelsFilter");
	const reference = filter.funnelStepReference === "previous" ? "previous" : "total";
	const rows = readSteps(result).filter((row) => row.length > 0);
	const first = rows[0];
	if (!first) return emptyPicture("Nobody began this funnel", "No event matches its first step in the date range.");
	const broken = first[0]?.breakdown_value !== undefined;
	const series = listOf(query, "series");
	// Those who left out an optional step did not drop off there.
	const before = (i: number): number => {
		let at = i - 1;
		while (at > 0 && series[at]?.optionalInFunnel === true) at--;
		return at;
	};
	const steps: Step[] = first.map((item, i) => ({
		name: item.custom_name || item.name || "All events",
		optional: series[i]?.optionalInFunnel === true,
		bars: rows.map((row, colour) => bar(query, row, i, before(i), colour, broken, reference)),
	}));
	const ends = rows.map((row) => share(row.at(-1)?.count ?? 0, row[0]?.count ?? 0));
	return {
		label: `Funnel of ${counted(steps.length, "step")} from ${steps[0]?.name} to ${steps.at(-1)?.name}: ${broken ? counted(rows.length, "value") : `${ends[0]} converted`}`,
		body: { is: "steps", steps, sideways: filter.layout === "horizontal", reference },
		legend: broken ? rows.map((row, colour) => ({ name: nameOf(row), colour })) : undefined,
		sheet: {
			columns: [
				{ title: "Step" },
				...(broken ? [{ title: "Value" }] : []),
				...["Reached", "Of all", "Of the step before", "Dropped off", "Median time", "Average time"].map((title) => ({
					title,
					number: true,
				})),
			],
			rows: steps.flatMap((step, i) =>
				step.bars.map((b, k): Cell[] => [
					{ text: `${i + 1}. ${step.name}` },
					...(broken ? [{ text: b.name }] : []),
					{ text: number(b.count), behind: b.reached },
					{ text: share(b.ofFirst, 1) },
					{ text: i === 0 ? "" : share(b.ofPrevious, 1) },
					i === 0 ? { text: "" } : { text: number(b.dropped), behind: b.lost },
					{ text: timeText(b.time) },
					{ text: timeText(rows[k]?.[i]?.average_conversion_time ?? null) },
				]),
			),
		},
	};
}

const timeText = (seconds: number | null): string => (seconds === null ? "" : span(seconds));

/** The value of the breakdown of a row. The name of a cohort is beside its number. */
function nameOf(row: StepItem[]): string {
	return breakdownName(row[0]?.breakdown ?? row[0]?.breakdown_value);
}

function bar(query: QueryNode, row: StepItem[], i: number, from: number, colour: number, broken: boolean, reference: Reference): StepBar {
	const item = row[i];
	const count = item?.count ?? 0;
	const first = row[0]?.count ?? 0;
	const before = i === 0 ? count : (row[from]?.count ?? 0);
	const value = row[0]?.breakdown_value;
	const name = broken ? nameOf(row) : "";
	const step = item?.custom_name || item?.name || "All events";
	const title = `${i + 1}. ${step}${name ? ` · ${name}` : ""}`;
	const ofFirst = first === 0 ? 0 : count / first;
	const ofPrevious = before === 0 ? 0 : count / before;
	return {
		name,
		count,
		ofFirst,
		ofPrevious,
		drawn: reference === "previous" ? ofPrevious : ofFirst,
		dropped: Math.max(0, before - count),
		colour: broken ? colour : 0,
		time: item?.median_conversion_time ?? null,
		reached: () => ({ title, source: funnelActors(query, i + 1, value) }),
		lost: i === 0 ? undefined : () => ({ title: `Dropped off before ${title}`, source: funnelActors(query, -(i + 1), value) }),
	};
}

interface TrendItem {
	data: number[];
	days: string[];
	breakdown_value?: unknown;
	breakdown?: unknown;
}

function trendPicture(query: QueryNode, result: QueryResult): Picture {
	const items = (Array.isArray(result.results) ? result.results : []) as TrendItem[];
	const interval = intervalOf(query);
	const days = items[0]?.days ?? [];
	if (items.length === 0) return emptyPicture("Nobody began this funnel", "No event matches its first step in the date range.");
	return simplePicture({
		title: `Conversion by ${interval}`,
		axis: "Began in",
		names: days.map((day) => shortDay(day, interval)),
		longNames: days.map((day) => longDay(day, interval)),
		shape: "line",
		format: plain({ format: "percentage" }),
		open: goesOn(query, result, days.at(-1)),
		labelled: fieldsOf(query, "funnelsFilter").showValuesOnSeries === true,
		rows: items.map((item, colour) => {
			const name = item.breakdown_value === undefined ? "Converted" : breakdownName(item.breakdown ?? item.breakdown_value);
			return {
				name,
				colour,
				points: item.data,
				behind: (i) => ({
					title: `${name === "Converted" ? name : `${name} converted`}, began ${longDay(item.days[i] ?? "", interval)}`,
					source: funnelTrendActors(query, item.days[i] ?? "", item.breakdown_value),
				}),
			};
		}),
	});
}

function timePicture(result: QueryResult): Picture {
	const given = (result.results ?? {}) as {
		bins?: [number, number][];
		average_conversion_time?: number | null;
		median_conversion_time?: number | null;
	};
	const bins = given.bins ?? [];
	if (!bins.some(([, count]) => count > 0)) return emptyPicture("Nobody converted", "There are no times to show.");
	const width = bins.length > 1 ? (bins[1]?.[0] ?? 0) - (bins[0]?.[0] ?? 0) : 0;
	const closing = bins.at(-1)?.[1] === 0 ? bins.slice(0, -1) : bins;
	const names = closing.map(([from]) => span(from));
	const mean = typeof given.average_conversion_time === "number" ? `Average ${span(given.average_conversion_time)}` : "";
	const median = typeof given.median_conversion_time === "number" ? `median ${span(given.median_conversion_time)}` : "";
	return {
		...simplePicture({
			title: "Time to convert",
			axis: "Time",
			names,
			longNames: closing.map(([from]) => (width ? `${span(from)} to ${span(from + width)}` : span(from))),
			shape: "bar",
			gap: false,
			labelled: true,
			format: plain(),
			rows: [{ name: "Converted", colour: 0, points: closing.map(([, count]) => count) }],
		}),
		note: [mean, median].filter(Boolean).join(", "),
	};
}
