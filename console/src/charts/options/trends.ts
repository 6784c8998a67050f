import type { QueryNode, QueryResult } from "../../api/query";
import { trendActors } from "../behind";
import { colourAt, emptyPicture, type Figure, type Picture } from "../model";
import { goesOn } from "../progress";
import { changeOf, fieldsOf, formatValue, intervalOf, listed, longDay, shortDay, shorten, valueFormat } from "../values";
import { base, categories, grid, tooltip, tooltipText, values } from "./axes";
import { behindLine, cellBehind, type Line, readLines } from "./lines";
import { looks, timePicture } from "./time";
import { mapPicture, numberPicture, piePicture, tablePicture, twoDimensionalPicture, valuePicture } from "./totals";

/** A TrendsQuery in its display. */
export function trendsPicture(query: QueryNode, result: QueryResult): Picture {
	const filter = fieldsOf(query, "trendsFilter");
	const display = String(filter.display ?? "ActionsLineGraph");
	if (display === "BoxPlot") return boxPicture(query, result);
	const lines = readLines(query, result);
	if (lines.length === 0) return emptyPicture("Nothing was counted", "No event matches this insight in its date range.");
	switch (display) {
		case "BoldNumber":
			return numberPicture(query, lines);
		case "CalendarHeatmap":
			return { ...numberPicture(query, lines), note: "A trend counts no hours of the week. A CalendarHeatmapQuery does." };
		case "Metric":
			return metricPicture(query, lines);
		case "ActionsPie":
		case "ActionsDonut":
			return piePicture(query, lines, display === "ActionsDonut");
		case "ActionsProportionBar":
		case "ActionsBarValue":
			return valuePicture(query, lines);
		case "ActionsTable":
			return tablePicture(query, lines);
		case "WorldMap":
			return mapPicture(query, lines);
		case "TwoDimensionalHeatmap":
			return twoDimensionalPicture(query, lines);
		case "SlopeGraph":
			return slopePicture(query, lines);
		case "ScatterPlot":
			return scatterPicture(query, result, lines);
	}
	return timePicture(query, result, lines, looks[display] ?? { shape: "line", stacked: false });
}

/** A number with its line, for each series: its total, mean or last point. */
function metricPicture(query: QueryNode, lines: Line[]): Picture {
	const filter = fieldsOf(query, "trendsFilter");
	const format = valueFormat(filter);
	const summary = String(filter.metricSummary ?? "total");
	const summed = (l: Line): number => {
		if (summary === "latest") return l.points.at(-1) ?? 0;
		const sum = l.points.reduce((total, y) => total + y, 0);
		return summary === "average" ? sum / Math.max(1, l.points.length) : l.item.count;
	};
	const figures: Figure[] = lines
		.filter((l) => !l.previous && !l.hidden)
		.map((l) => ({
			name: l.name,
			text: formatValue(summed(l), format),
			change: l.other && filter.metricShowChange !== false ? changeOf(summed(l), summed(l.other)) : undefined,
			previous: l.other && formatValue(summed(l.other), format),
			points: l.points,
			colour: l.colour,
			behind: summary === "latest" ? cellBehind(query, l, l.days.length - 1) : undefined,
		}));
	const over = timePicture(query, { results: [] }, lines, { shape: "line", stacked: false });
	return { label: figures.map((f) => `${f.name}: ${f.text}`).join(", "), body: { is: "figures", figures }, sheet: over.sheet };
}

/** What is said of a bucket that had not ended when the result was computed. */
const soFar = " (so far)";
const openNote = (interval: string): string => `The last ${interval} has not ended yet.`;

/** The first and the last bucket of each series. */
function slopePicture(query: QueryNode, lines: Line[]): Picture {
	const format = valueFormat(fieldsOf(query, "trendsFilter"));
	const interval = intervalOf(query);
	const current = lines.filter((l) => !l.previous);
	const days = current[0]?.days ?? [];
	const ends = days.length > 1 ? [0, days.length - 1] : [0];
	const open = current.some((l) => l.item.incomplete_end === true);
	const titles = ends.map((i) => shortDay(days[i] ?? "", interval) + (open && i === days.length - 1 ? soFar : ""));
	return {
		note: open ? openNote(interval) : undefined,
		label: `Slope graph of ${listed(current.map((l) => l.name))} from ${titles[0] ?? ""} to ${titles.at(-1) ?? ""}`,
		legend: current.map((l) => ({ name: l.name, colour: l.colour, hidden: l.hidden })),
		sheet: {
			columns: [{ title: "Series" }, ...titles.map((title) => ({ title, number: true })), { title: "Change", number: true }],
			rows: current.map((l) => [
				{ text: l.name },
				...ends.map((i) => ({ text: formatValue(l.points[i], format), behind: cellBehind(query, l, i) })),
				{ text: formatValue((l.points.at(-1) ?? 0) - (l.points[0] ?? 0), format) },
			]),
		},
		body: {
			is: "plot",
			height: 320,
			pick: ({ series, index }) => {
				const line = lines[Number(series)];
				return line && behindLine(query, line, ends[index]);
			},
			option: (paint, room) => ({
				...base(paint),
				grid: { ...grid(room), left: 40, right: 40 },
				tooltip: tooltip(paint, {
					trigger: "item",
					formatter: (p: { seriesId: string; dataIndex: number; marker: string }) => {
						const l = lines[Number(p.seriesId)] as Line;
						const value = l.points[ends[p.dataIndex] ?? 0] ?? 0;
						return tooltipText(titles[p.dataIndex] ?? "", [{ name: l.name, text: formatValue(value, format), value, marker: p.marker }]);
					},
				}),
				xAxis: categories(paint, titles, { boundaryGap: false }),
				yAxis: values(paint, format),
				series: current
					.filter((_, i) => !room.hidden.has(i))
					.map((l) => ({
						id: String(l.place),
						name: l.name,
						type: "line",
						symbolSize: 9,
						symbol: "circle",
						data: ends.map((i) => l.points[i] ?? 0),
						itemStyle: { color: colourAt(paint, l.colour) },
						lineStyle: { color: colourAt(paint, l.colour), width: 2, type: open ? [3, 4] : "solid" },
						label: {
							show: !room.small,
							position: "top",
							color: paint.soft,
							formatter: (p: { value: number }) => formatValue(p.value, format),
						},
						labelLayout: { hideOverlap: true },
					})),
			}),
		},
	};
}

/** Two series against each other, a point for each bucket; another number of series over time. */
function scatterPicture(query: QueryNode, result: QueryResult, lines: Line[]): Picture {
	const current = lines.filter((l) => !l.previous);
	const [x, y] = current;
	const over = timePicture(query, result, lines, { shape: "line", stacked: false });
	if (current.length !== 2 || !x || !y) return over;
	const format = valueFormat(fieldsOf(query, "trendsFilter"));
	const interval = intervalOf(query);
	return {
		label: `Scatter plot of ${y.name} against ${x.name}, a point for each ${interval}`,
		sheet: over.sheet,
		body: {
			is: "plot",
			height: 340,
			pick: ({ index }) => behindLine(query, y, index),
			option: (paint, room) => ({
				...base(paint),
				grid: grid(room),
				tooltip: tooltip(paint, {
					trigger: "item",
					formatter: (p: { dataIndex: number }) =>
						tooltipText(
							longDay(x.days[p.dataIndex] ?? "", interval),
							[x, y].map((l) => ({ name: l.name, value: 0, text: formatValue(l.points[p.dataIndex] ?? 0, format) })),
						),
				}),
				xAxis: values(paint, format, { name: shorten(x.name, 60), nameLocation: "middle", nameGap: 26 }),
				yAxis: values(paint, format, { name: shorten(y.name, 60), nameLocation: "middle", nameGap: 44 }),
				series: [
					{
						id: "points",
						type: "scatter",
						symbolSize: 9,
						itemStyle: { color: paint.series[0], opacity: 0.75 },
						data: x.points.map((value, i) => [value, y.points[i] ?? 0]),
					},
				],
			}),
		},
	};
}

interface Box {
	day: string;
	min: number;
	p25: number;
	median: number;
	p75: number;
	max: number;
	mean: number;
	series_index: number;
	series_label: string;
}

/** How values are spread in each bucket. */
function boxPicture(query: QueryNode, result: QueryResult): Picture {
	const boxes = (Array.isArray(result.results) ? result.results : []) as Box[];
	if (boxes.length === 0) return emptyPicture("There are no boxes", result.error ?? "A box plot needs a property in each series.");
	const format = valueFormat(fieldsOf(query, "trendsFilter"));
	const interval = intervalOf(query);
	const orders = [...new Set(boxes.map((b) => b.series_index))];
	const bySeries = orders.map((order) => boxes.filter((b) => b.series_index === order));
	const days = (bySeries[0] ?? []).map((b) => b.day);
	const openDay = goesOn(query, result, days.at(-1)) ? days.at(-1) : undefined;
	const dayOf = (b: Box) => longDay(b.day, interval) + (b.day === openDay ? soFar : "");
	const names = bySeries.map((list) => list[0]?.series_label ?? "");
	const ends = ["min", "p25", "median", "p75", "max", "mean"] as const;
	const titles = { min: "Least", p25: "25th percentile", median: "Median", p75: "75th percentile", max: "Greatest", mean: "Average" };
	const behind = (b: Box) => ({
		title: `${b.series_label}, ${longDay(b.day, interval)}`,
		source: trendActors(query, { series: b.series_index, day: b.day }),
	});
	return {
		note: openDay === undefined ? undefined : openNote(interval),
		label: `Box plot of ${listed(names)} by ${interval}`,
		legend: names.map((name, i) => ({ name, colour: i })),
		sheet: {
			columns: [{ title: "Series" }, { title: "Time" }, ...ends.map((end) => ({ title: titles[end], number: true }))],
			rows: boxes.map((b) => [
				{ text: b.series_label },
				{ text: dayOf(b) },
				...ends.map((end) => ({ text: formatValue(b[end], format), behind: () => behind(b) })),
			]),
		},
		body: {
			is: "plot",
			height: 320,
			pick: ({ series, index }) => {
				const box = bySeries[Number.parseInt(series, 10)]?.[index];
				return box && behind(box);
			},
			near: (index, _, room) => {
				const box = bySeries.find((__, i) => !room.hidden.has(i))?.[index];
				return bySeries.length - room.hidden.size === 1 && box ? behind(box) : undefined;
			},
			option: (paint, room) => ({
				...base(paint),
				grid: grid(room),
				tooltip: tooltip(paint, {
					trigger: "item",
					formatter: (p: { seriesId: string; dataIndex: number }) => {
						const b = bySeries[Number.parseInt(p.seriesId, 10)]?.[p.dataIndex];
						if (!b) return "";
						return tooltipText(
							`${b.series_label}, ${dayOf(b)}`,
							ends.toReversed().map((end) => ({ name: titles[end], value: b[end], text: formatValue(b[end], format) })),
						);
					},
				}),
				xAxis: categories(
					paint,
					days.map((day) => shortDay(day, interval)),
				),
				yAxis: values(paint, format, { type: fieldsOf(query, "trendsFilter").yAxisScaleType === "log10" ? "log" : "value" }),
				series: bySeries.flatMap((list, i) => {
					if (room.hidden.has(i)) return [];
					const colour = colourAt(paint, i);
					const mean = {
						id: `${i}:mean`,
						type: "scatter",
						symbol: "diamond",
						symbolSize: 6,
						itemStyle: { color: colour },
						data: list.map((b) => b.mean),
					};
					const box = {
						id: String(i),
						type: "boxplot",
						boxWidth: [4, 28],
						itemStyle: { color: `${colour}33`, borderColor: colour, borderWidth: 1.5 },
						data: list.map((b) => {
							const value = [b.min, b.p25, b.median, b.p75, b.max];
							return b.day === openDay ? { value, itemStyle: { borderType: "dashed" } } : value;
						}),
					};
					return bySeries.length === 1 ? [box, mean] : [box];
				}),
			}),
		},
	};
}
