import { isNumeric, type QueryNode, type QueryResult, typesOf } from "../../api/query";
import { counted, number, text } from "../../ui/format";
import { correlationActors } from "../behind";
import { emptyPicture, type Cell, type Figure, type HeatCell, type Picture } from "../model";
import { breakdownName, fieldsOf, share, span } from "../values";

interface OverviewItem {
	key: string;
	kind: "unit" | "duration_s" | "percentage" | "currency";
	isIncreaseBad: boolean | null;
	value: number | null;
	previous: number | null;
	changeFromPreviousPct: number | null;
}

/** A WebOverviewQuery: figures with their change. */
export function webOverviewPicture(result: QueryResult): Picture {
	const items = (Array.isArray(result.results) ? result.results : []) as OverviewItem[];
	const figures: Figure[] = items.map((item) => ({
		name: item.key[0]?.toUpperCase() + item.key.slice(1),
		text: overviewText(item.value, item.kind),
		previous: item.previous === null ? undefined : overviewText(item.previous, item.kind),
		change: item.previous === null ? undefined : item.changeFromPreviousPct === null ? null : item.changeFromPreviousPct / 100,
		inverse: item.isIncreaseBad === true,
	}));
	return {
		label: figures.map((f) => `${f.name}: ${f.text}`).join(", "),
		body: { is: "figures", figures },
		sheet: {
			columns: [{ title: "Figure" }, { title: "Number", number: true }, { title: "Previous", number: true }],
			rows: figures.map((f) => [{ text: f.name }, { text: f.text }, { text: f.previous ?? "" }]),
		},
	};
}

function overviewText(value: number | null, kind: OverviewItem["kind"]): string {
	if (value === null) return "–";
	if (kind === "duration_s") return span(value);
	return kind === "percentage" ? share(value, 100) : number(value);
}

const statsTitles: Record<string, string> = {
	visitors: "Visitors",
	views: "Views",
	bounce_rate: "Bounce rate",
	total_conversions: "Conversions",
	unique_conversions: "Converted visitors",
	conversion_rate: "Conversion rate",
	average_scroll_percentage: "Average scroll depth",
	scroll_gt80_percentage: "Deep scrolling",
};

/** A WebStatsTableQuery: a row for each value, with previous numbers beside those of now. */
export function webStatsPicture(query: QueryNode, result: QueryResult): Picture {
	const rows = (Array.isArray(result.results) ? result.results : []) as unknown[][];
	const names = (result.columns ?? []).map((name) => name.replace("context.columns.", ""));
	const compared = fieldsOf(query, "compareFilter").compare === true;
	const by = String(query.breakdownBy ?? "Value").replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);
	const shown = names.map((name, at) => ({ name, at })).filter(({ name }) => name in statsTitles);
	const cells = (row: unknown[]): Cell[] =>
		shown.flatMap(({ name, at }) => {
			const pair = Array.isArray(row[at]) ? (row[at] as (number | null)[]) : [row[at] as number | null];
			const written = (v: number | null | undefined) =>
				v === null || v === undefined ? "–" : /rate|percentage/.test(name) ? share(v, 1) : number(v);
			return compared ? [{ text: written(pair[0]) }, { text: written(pair[1]) }] : [{ text: written(pair[0]) }];
		});
	if (rows.length === 0) return emptyPicture("No visits", "There are no page views in the date range.");
	return {
		label: `Visits by ${by}`,
		body: { is: "sheet" },
		sheet: {
			columns: [
				{ title: by },
				...shown.flatMap(({ name }) => {
					const title = statsTitles[name] as string;
					return compared
						? [
								{ title, number: true },
								{ title: `${title} before`, number: true },
							]
						: [{ title, number: true }];
				}),
			],
			rows: rows.map((row) => [{ text: breakdownName(row[names.indexOf("breakdown_value")]) }, ...cells(row)]),
		},
		note: result.hasMore ? "There are more rows." : undefined,
	};
}

interface Hours {
	data: { row: number; column: number; value: number }[];
	rowAggregations: { row: number; value: number }[];
	columnAggregations: { column: number; value: number }[];
	allAggregations: number;
}

const weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** A CalendarHeatmapQuery: weekdays and hours. */
export function calendarPicture(result: QueryResult): Picture {
	const given = (result.results ?? {}) as Partial<Hours>;
	const found = new Map((given.data ?? []).map((d) => [d.row * 24 + d.column, d.value]));
	const most = Math.max(0, ...found.values());
	const hours = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0"));
	const cell = (value: number, hint: string): HeatCell => ({
		text: number(value),
		heat: most ? value / most : 0,
		hint: `${hint}: ${number(value)}`,
	});
	const totalOf = (row: number) => given.rowAggregations?.find((r) => r.row === row)?.value ?? 0;
	const columnTotals = hours.map((_, hour) => given.columnAggregations?.find((c) => c.column === hour)?.value ?? 0);
	const plainCell = (value: number): HeatCell => ({ text: number(value), heat: null });
	return {
		label: `Heat map of ${number(given.allAggregations ?? 0)} by weekday and hour`,
		body: {
			is: "heat",
			heads: ["Weekday", "All"],
			columns: hours,
			groups: [
				{
					name: "",
					rows: [
						...weekdays.map((name, i) => ({
							heads: [{ text: name }, { text: number(totalOf(i + 1)) }],
							cells: hours.map((hour, h) => cell(found.get((i + 1) * 24 + h) ?? 0, `${name}, ${hour}:00`)),
						})),
						{ heads: [{ text: "All" }, { text: number(given.allAggregations ?? 0) }], cells: columnTotals.map(plainCell) },
					],
				},
			],
		},
		sheet: {
			columns: [{ title: "Weekday" }, ...hours.map((title) => ({ title, number: true })), { title: "All", number: true }],
			rows: weekdays.map((name, i) => [
				{ text: name },
				...hours.map((_, h) => ({ text: number(found.get((i + 1) * 24 + h) ?? 0) })),
				{ text: number(totalOf(i + 1)) },
			]),
		},
	};
}

interface CorrelationItem {
	event: { event: string };
	success_count: number;
	failure_count: number;
	odds_ratio: number;
	correlation_type: "success" | "failure";
}

/** A FunnelCorrelationQuery: what goes with success and failure. */
export function correlationPicture(query: QueryNode, result: QueryResult): Picture {
	const given = (result.results ?? {}) as { events?: CorrelationItem[]; skewed?: boolean };
	const items = given.events ?? [];
	if (items.length === 0) return emptyPicture("No correlation found", "Too few actors have anything in common.");
	const title = (item: string) => item.split("::").join(" = ");
	return {
		label: `Correlations with the funnel: ${items.length} items`,
		body: { is: "sheet" },
		sheet: {
			columns: [
				{ title: query.funnelCorrelationType === "properties" ? "Property" : "Event" },
				{ title: "Goes with" },
				{ title: "Converted", number: true },
				{ title: "Dropped off", number: true },
				{ title: "Odds ratio", number: true },
			],
			rows: items.map((item) => {
				const name = title(item.event.event);
				return [
					{ text: name },
					{ text: item.correlation_type === "success" ? "Success" : "Failure" },
					{
						text: number(item.success_count),
						behind: () => ({ title: `${name}, converted`, source: correlationActors(query, item.event.event, true) }),
					},
					{
						text: number(item.failure_count),
						behind: () => ({ title: `${name}, dropped off`, source: correlationActors(query, item.event.event, false) }),
					},
					{ text: number(item.odds_ratio) },
				];
			}),
		},
		note: given.skewed ? "Far more actors did one than the other, so the ratios are rough." : undefined,
	};
}

/** Rows of any query that has columns. */
export function rowsPicture(result: QueryResult): Picture {
	const rows = (Array.isArray(result.results) ? result.results : []) as unknown[];
	const names = result.columns ?? columnsOf(rows);
	const types = typesOf(result.types, names.length);
	const list = rows.map((row) => (Array.isArray(row) ? row : names.map((name) => (row as Record<string, unknown> | null)?.[name])));
	if (names.length === 0) return emptyPicture("There are no rows");
	return {
		label: `Table of ${counted(list.length, "row")}: ${names.join(", ")}`,
		body: {
			is: "rows",
			columns: names.map((title, i) => ({ title, detail: types[i] ?? "", number: isNumeric(types[i] ?? "") })),
			rows: list,
		},
		sheet: { columns: names.map((title) => ({ title })), rows: list.slice(0, 1).map((row) => row.map((value) => ({ text: text(value) }))) },
		note: result.hasMore ? "There are more rows." : undefined,
	};
}

const columnsOf = (rows: unknown[]): string[] =>
	rows[0] !== null && typeof rows[0] === "object" && !Array.isArray(rows[0]) ? Object.keys(rows[0]) : [];
