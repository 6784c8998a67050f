import type { QueryNode } from "../../api/query";
import { type Cell, colourAt, type Figure, type Heat, type Picture, type Sheet } from "../model";
import { changeOf, fieldsOf, formatValue, listed, share, shorten, type ValueFormat, valueFormat, breakdownName, literal } from "../values";
import { base, categories, grid, pointer, tooltip, tooltipText, values } from "./axes";
import { behindLine, cellBehind, type Line, orderOf } from "./lines";

const formatOf = (query: QueryNode): ValueFormat => valueFormat(fieldsOf(query, "trendsFilter"));

/** A row for each number, with the previous one beside it. */
export function totalsSheet(query: QueryNode, lines: Line[]): Sheet {
	const format = formatOf(query);
	const current = lines.filter((l) => !l.previous || !l.other);
	const compared = lines.some((l) => l.previous);
	const broken = lines.some((l) => l.item.breakdown_value !== undefined);
	const cell = (line: Line | undefined): Cell =>
		line ? { text: formatValue(line.total, format), behind: cellBehind(query, line) } : { text: "" };
	return {
		columns: [
			{ title: "Series" },
			...(broken ? [{ title: "Value" }] : []),
			{ title: "Number", number: true },
			...(compared
				? [
						{ title: "Previous", number: true },
						{ title: "Change", number: true },
					]
				: []),
		],
		rows: current.map((l) => [
			{ text: l.series },
			...(broken ? [{ text: l.value }] : []),
			cell(l.previous ? undefined : l),
			...(compared ? [cell(l.previous ? l : l.other), { text: changeText(l) }] : []),
		]),
	};
}

function changeText(line: Line): string {
	const change = line.previous ? null : changeOf(line.total, line.other?.total);
	return change === null ? "–" : signedShare(change);
}

/** A change as +12.3%. */
export const signedShare = (change: number): string => `${change > 0 ? "+" : change < 0 ? "−" : ""}${share(Math.abs(change), 1)}`;

/** One large number for each series. */
export function numberPicture(query: QueryNode, lines: Line[]): Picture {
	const format = formatOf(query);
	const figures: Figure[] = lines
		.filter((l) => !l.previous && !l.hidden)
		.map((l) => ({
			name: l.name,
			text: formatValue(l.total, format),
			change: l.other ? changeOf(l.total, l.other.total) : undefined,
			previous: l.other && formatValue(l.other.total, format),
			behind: cellBehind(query, l),
		}));
	return {
		label: figures.map((f) => `${f.name}: ${f.text}`).join(", "),
		body: { is: "figures", figures },
		sheet: totalsSheet(query, lines),
	};
}

/** Shares of a whole. */
export function piePicture(query: QueryNode, lines: Line[], donut: boolean): Picture {
	const filter = fieldsOf(query, "trendsFilter");
	const format = formatOf(query);
	const current = lines.filter((l) => !l.previous);
	return {
		label: `${donut ? "Donut" : "Pie"} chart of ${listed(current.map((l) => `${l.name}: ${formatValue(l.total, format)}`))}`,
		sheet: totalsSheet(query, lines),
		legend: current.map((l) => ({ name: l.name, colour: l.colour, hidden: l.hidden })),
		body: {
			is: "plot",
			height: 320,
			pick: ({ index, data }) => {
				const line = lines[(data as { place?: number } | null)?.place ?? -1] ?? current[index];
				return line && behindLine(query, line);
			},
			option: (paint, room) => {
				const shown = current.filter((_, i) => !room.hidden.has(i) && (current[i]?.total ?? 0) > 0);
				const whole = shown.reduce((sum, l) => sum + l.total, 0);
				const asShare = filter.showPercentStackView !== false || filter.showPercentagesOnSeries === true;
				const textOf = (l: Line) => {
					const parts = [];
					if (filter.showLabelsOnSeries !== false) parts.push(shorten(l.name, 24));
					if (filter.showValuesOnSeries !== false) parts.push(asShare ? share(l.total, whole) : formatValue(l.total, format));
					return parts.join("\n");
				};
				const byPlace = (place: number) => lines[place] as Line;
				return {
					...base(paint),
					tooltip: tooltip(paint, {
						trigger: "item",
						formatter: (p: { data: { place: number }; marker: string }) => {
							const l = byPlace(p.data.place);
							return `${p.marker}${literal(l.name)}\n${formatValue(l.total, format)} (${share(l.total, whole)})`;
						},
					}),
					graphic: donut
						? [
								{
									type: "text",
									left: "center",
									top: "middle",
									silent: true,
									style: { text: formatValue(whole, format), font: `600 20px ${paint.font}`, fill: paint.text },
								},
							]
						: [],
					series: [
						{
							id: "pie",
							type: "pie",
							radius: donut ? ["48%", "76%"] : [0, "76%"],
							data: shown.map((l) => ({ name: l.name, value: l.total, place: l.place, itemStyle: { color: colourAt(paint, l.colour) } })),
							itemStyle: { borderColor: paint.surface, borderWidth: 1.5 },
							label: {
								show: !room.small && room.width > 420,
								color: paint.text,
								lineHeight: 15,
								formatter: (p: { data: { place: number } }) => textOf(byPlace(p.data.place)),
							},
							labelLine: { lineStyle: { color: paint.soft } },
							labelLayout: { hideOverlap: true },
						},
					],
				};
			},
		},
	};
}

/** A bar for each number, the first on top. */
export function valuePicture(query: QueryNode, lines: Line[]): Picture {
	const filter = fieldsOf(query, "trendsFilter");
	const format = formatOf(query);
	const current = lines.filter((l) => !l.previous || !l.other);
	const previous = lines.some((l) => l.previous);
	return {
		label: `Bar chart of ${listed(current.map((l) => `${l.name}: ${formatValue(l.total, format)}`))}`,
		sheet: totalsSheet(query, lines),
		body: {
			is: "plot",
			height: Math.max(160, current.length * (previous ? 44 : 30) + 40),
			pick: ({ series, index }) => {
				const line = current[index];
				const wanted = series === "previous" ? (line?.previous ? line : line?.other) : line;
				return wanted && behindLine(query, wanted);
			},
			option: (paint, room) => {
				const bar = (id: string, totalOf: (l: Line) => number | null, alpha: string) => ({
					id,
					type: "bar",
					barMaxWidth: 24,
					data: current.map((l) => ({ value: totalOf(l), itemStyle: { color: colourAt(paint, l.colour) + alpha } })),
					label: {
						show: filter.showValuesOnSeries !== false,
						position: "right",
						color: paint.soft,
						formatter: (p: { value: number | null }) => (p.value === null ? "" : formatValue(p.value, format)),
					},
				});
				return {
					...base(paint),
					grid: { ...grid(room), right: 72 },
					tooltip: tooltip(paint, {
						trigger: "axis",
						axisPointer: pointer(paint, "shadow"),
						formatter: (given: { dataIndex: number }[]) => {
							const l = current[given[0]?.dataIndex ?? 0] as Line;
							const rows = [{ name: "Now", text: formatValue(l.total, format), value: l.total }];
							if (l.other) rows.push({ name: "Previous", text: formatValue(l.other.total, format), value: l.other.total });
							return tooltipText(l.name, rows);
						},
					}),
					xAxis: values(paint, format, {
						type: filter.yAxisScaleType === "log10" ? "log" : "value",
						splitNumber: room.width < 420 ? 2 : 5,
					}),
					yAxis: categories(
						paint,
						current.map((l) => shorten(l.name, room.width < 420 ? 14 : 32)),
						{ inverse: true, axisLabel: { color: paint.text, interval: 0 } },
					),
					series: [
						bar("current", (l) => (l.previous ? null : l.total), ""),
						...(previous ? [bar("previous", (l) => (l.previous ? l.total : (l.other?.total ?? null)), "73")] : []),
					],
				};
			},
		},
	};
}

/** The numbers as a table alone. */
export function tablePicture(query: QueryNode, lines: Line[]): Picture {
	return { label: `Table of ${listed(lines.map((l) => l.name))}`, body: { is: "sheet" }, sheet: totalsSheet(query, lines) };
}

/** Numbers by country, drawn of the first series alone: a country has one colour. */
export function mapPicture(query: QueryNode, lines: Line[]): Picture {
	const format = formatOf(query);
	const current = lines.filter((l) => !l.previous);
	const first = current[0];
	const ofFirst = (l: Line) => first !== undefined && orderOf(l.item) === orderOf(first.item);
	const several = !current.every(ofFirst);
	const all = current.map((l) => {
		const code = codeOf(l.item.breakdown_value);
		const text = formatValue(l.total, format);
		return { line: l, code, name: countryName(code), value: l.total, text, behind: cellBehind(query, l) };
	});
	const countries = all.filter((c) => ofFirst(c.line));
	return {
		label: `World map of ${listed(countries.map((c) => `${c.name}: ${c.text}`))}`,
		body: { is: "map", countries },
		note: several ? `The map shows ${first?.series} only. The table has all series.` : undefined,
		sheet: {
			columns: [...(several ? [{ title: "Series" }] : []), { title: "Country" }, { title: "Number", number: true }],
			rows: all.map((c) => [...(several ? [{ text: c.line.series }] : []), { text: c.name }, { text: c.text, behind: c.behind }]),
		},
	};
}

/** The code of a country in the value of a breakdown, which may be a list. */
function codeOf(value: unknown): string {
	return String(Array.isArray(value) ? value.at(-1) : (value ?? "")).toUpperCase();
}

const regions = new Intl.DisplayNames("en", { type: "region", fallback: "code" });

/** The English name of a country. */
export function countryName(code: string): string {
	if (!/^[A-Z]{2}$/.test(code)) return breakdownName(code === "" ? null : code.startsWith("$$") ? code.toLowerCase() : code);
	return regions.of(code) ?? code;
}

/** Numbers by two values: those of the two first breakdowns, or the series and the value of the only one. */
export function twoDimensionalPicture(query: QueryNode, lines: Line[]): Picture {
	const format = formatOf(query);
	const current = lines.filter((l) => !l.previous);
	const at = (l: Line): [string, string] => {
		const value = l.item.breakdown_value;
		if (Array.isArray(value) && value.length > 1) return [breakdownName(value[0]), breakdownName(value.slice(1))];
		return value === undefined ? [l.series, "Number"] : [l.series, l.value];
	};
	const rows = [...new Set(current.map((l) => at(l)[0]))];
	const columns = [...new Set(current.map((l) => at(l)[1]))];
	const cells = new Map(current.map((l) => [at(l).join("\u0000"), l]));
	const most = Math.max(0, ...current.map((l) => l.total));
	const body: Heat = {
		is: "heat",
		heads: ["Value"],
		columns,
		groups: [
			{
				name: "",
				rows: rows.map((row) => ({
					heads: [{ text: row }],
					cells: columns.map((column) => {
						const l = cells.get(`${row}\u0000${column}`);
						if (!l) return { text: "", heat: null };
						return {
							text: formatValue(l.total, format),
							heat: most ? l.total / most : 0,
							hint: `${row}, ${column}`,
							behind: cellBehind(query, l),
						};
					}),
				})),
			},
		],
	};
	return { label: `Heat map of ${listed(rows)} by ${listed(columns)}`, body, sheet: totalsSheet(query, lines) };
}
