import type { Paint, Room } from "../model";
import { formatAxis, literal, shorten, type ValueFormat } from "../values";

type Options = Record<string, unknown>;

/** Many series have a canvas of their own below that of the tooltip, so that a moving pointer does not draw them again. */
export const below = (count: number): Options => (count > 12 ? { zlevel: -1 } : {});

/** What all plots share. Nothing moves, and tooltips are drawn on the canvas: the page's policy forbids styles in HTML. */
export function base(paint: Paint): Options {
	return {
		animation: false,
		color: paint.series,
		textStyle: { fontFamily: paint.font, color: paint.text, fontSize: 12, lineHeight: 15 },
	};
}

/** Room around the axes, labels included. */
export const grid = (room: Room): Options => ({
	left: 4,
	right: room.small ? 8 : 16,
	top: 14,
	bottom: 4,
	outerBoundsMode: "same",
	outerBoundsContain: "all",
});

export function tooltip(paint: Paint, more: Options): Options {
	return {
		renderMode: "richText",
		confine: true,
		transitionDuration: 0,
		backgroundColor: paint.raised,
		borderColor: paint.line,
		borderWidth: 1,
		padding: [6, 10],
		textStyle: { color: paint.text, fontSize: 12, fontFamily: paint.font },
		...more,
	};
}

/** The pointer of a tooltip that shows all series at a place. */
export const pointer = (paint: Paint, type: "line" | "shadow"): Options => ({
	type,
	triggerEmphasis: false,
	lineStyle: { color: paint.soft, type: "dashed" },
	shadowStyle: { color: paint.line, opacity: 0.35 },
});

/** An axis of buckets or names. */
export function categories(paint: Paint, names: readonly string[], more: Options = {}): Options {
	return {
		type: "category",
		data: names.map((name) => shorten(name, 28)),
		axisLine: { lineStyle: { color: paint.line } },
		axisTick: { show: false },
		axisLabel: { color: paint.soft, hideOverlap: true, fontSize: 11 },
		nameTextStyle: { color: paint.soft },
		...more,
	};
}

/** An axis of numbers. */
export function values(paint: Paint, format: ValueFormat, more: Options = {}): Options {
	return {
		type: "value",
		axisLabel: { color: paint.soft, fontSize: 11, hideOverlap: true, formatter: (v: number) => formatAxis(v, format) },
		splitLine: { lineStyle: { color: paint.line } },
		nameTextStyle: { color: paint.soft },
		...more,
	};
}

/** The title of an axis, in the middle beside it. */
export function titled(name: unknown, gap: number): Options {
	return typeof name === "string" && name !== "" ? { name: shorten(name, 60), nameLocation: "middle", nameGap: gap } : {};
}

/** An entry of a tooltip. */
export interface TooltipRow {
	name: string;
	text: string;
	value: number;
	marker?: string;
}

/** At most so many series in a tooltip. */
const mostRows = 12;

/** A tooltip of several series, the largest first when there are many. */
export function tooltipText(title: string, rows: TooltipRow[]): string {
	const ranked = rows.length > mostRows ? rows.toSorted((a, b) => b.value - a.value) : rows;
	const lines = ranked.slice(0, mostRows).map((r) => `${r.marker ?? ""}${literal(shorten(r.name, 40))}  ${literal(r.text)}`);
	if (rows.length > mostRows) lines.push(`and ${rows.length - mostRows} more`);
	return [literal(title), ...lines].join("\n");
}
