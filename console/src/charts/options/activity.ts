import type { QueryNode, QueryResult } from "../../api/query";
import { lifecycleActors, stickinessActors } from "../behind";
import { emptyPicture, type Picture } from "../model";
import { goesOn } from "../progress";
import { fieldsOf, intervalOf, longDay, shortDay } from "../values";
import { plain, simplePicture } from "./simple";

interface StickinessItem {
	action: { order: number; name: string; custom_name?: string | null };
	data: number[];
	labels: string[];
	compare_label?: "current" | "previous";
}

/** A StickinessQuery: how many were active in how many intervals. */
export function stickinessPicture(query: QueryNode, result: QueryResult): Picture {
	const items = (Array.isArray(result.results) ? result.results : []) as StickinessItem[];
	if (items.length === 0) return emptyPicture("Nothing was counted");
	const filter = fieldsOf(query, "stickinessFilter");
	const longest = items.reduce((best, item) => (item.labels.length > best.length ? item.labels : best), [] as string[]);
	const orders = [...new Set(items.map((item) => item.action.order))];
	return simplePicture({
		title: "Stickiness",
		axis: "Active in",
		names: longest,
		shape: filter.display === "ActionsBar" ? "bar" : filter.display === "ActionsAreaGraph" ? "area" : "line",
		labelled: filter.showValuesOnSeries === true,
		format: plain(),
		rows: items.map((item) => {
			const previous = item.compare_label === "previous";
			const name = `${item.action.custom_name || item.action.name}${previous ? " (previous)" : ""}`;
			return {
				name,
				colour: orders.indexOf(item.action.order),
				points: item.data,
				dashed: previous,
				behind: (i) => ({
					title: `${name}, ${item.labels[i] ?? ""}`,
					source: stickinessActors(query, { days: i + 1, series: item.action.order, compare: item.compare_label }),
				}),
			};
		}),
	});
}

interface LifecycleItem {
	data: number[];
	days: string[];
	status: string;
}

/** The statuses of a lifecycle, with the colours that all pages give them. */
const statuses: Record<string, { name: string; colour: number }> = {
	new: { name: "New", colour: 0 },
	returning: { name: "Returning", colour: 2 },
	resurrecting: { name: "Resurrecting", colour: 6 },
	dormant: { name: "Dormant", colour: 7 },
};

/** A LifecycleQuery: a bar for each bucket, with those who went away below zero. */
export function lifecyclePicture(query: QueryNode, result: QueryResult): Picture {
	const items = (Array.isArray(result.results) ? result.results : []) as LifecycleItem[];
	const filter = fieldsOf(query, "lifecycleFilter");
	const wanted = Array.isArray(filter.toggledLifecycles) ? (filter.toggledLifecycles as string[]) : undefined;
	const interval = intervalOf(query);
	const days = items[0]?.days ?? [];
	if (items.length === 0) return emptyPicture("Nothing was counted");
	return simplePicture({
		title: `Lifecycle by ${interval}`,
		axis: interval[0]?.toUpperCase() + interval.slice(1),
		names: days.map((day) => shortDay(day, interval)),
		longNames: days.map((day) => longDay(day, interval)),
		shape: "bar",
		stacked: filter.stacked !== false,
		open: goesOn(query, result, days.at(-1)),
		labelled: filter.showValuesOnSeries === true,
		format: plain(),
		rows: items.map((item) => {
			const { name, colour } = statuses[item.status] ?? { name: item.status, colour: 9 };
			return {
				name,
				colour,
				points: item.data,
				hidden: wanted ? !wanted.includes(item.status) : false,
				behind: (i) =>
					item.data[i]
						? {
								title: `${name}, ${longDay(item.days[i] ?? "", interval)}`,
								source: lifecycleActors(query, item.days[i] ?? "", item.status),
							}
						: undefined,
			};
		}),
	});
}
