import { sourceOf } from "../../api/query";
import { letterOf } from "../../editor/series";
import type { Insight } from "../../insights/model";
import { number, percent } from "../../ui/format";

/** A rule that watches an insight: docs/alerts.md. */
export interface Alert {
	id: string;
	name: string;
	state: string;
	enabled: boolean;
	calculation_interval: string;
	condition: { type: Condition };
	config: { series_index: number } | null;
	threshold: { configuration: { type: "absolute" | "percentage"; bounds?: { lower?: number | null; upper?: number | null } } };
	last_checked_at?: string | null;
}

export type Condition = "absolute_value" | "relative_increase" | "relative_decrease";

export const conditions: { value: Condition; label: string }[] = [
	{ value: "absolute_value", label: "The number" },
	{ value: "relative_increase", label: "The increase since the interval before" },
	{ value: "relative_decrease", label: "The decrease since the interval before" },
];

export const intervals = [
	{ value: "real_time", label: "Every two minutes" },
	{ value: "every_15_minutes", label: "Every 15 minutes" },
	{ value: "hourly", label: "Hourly" },
	{ value: "daily", label: "Daily" },
	{ value: "weekly", label: "Weekly" },
	{ value: "monthly", label: "Monthly" },
] as const;

/** What the form of a new alert holds. Bounds are texts, in percent where the threshold is one. */
export interface AlertForm {
	name: string;
	condition: Condition;
	series: string;
	percentage: boolean;
	lower: string;
	upper: string;
	interval: string;
	webhook: string;
	secret: string;
}

/** The body that creates an alert. It throws when the form is not complete. */
export function alertBody(insight: Pick<Insight, "id">, form: AlertForm): Record<string, unknown> {
	const percentage = form.percentage && form.condition !== "absolute_value";
	const bounds = { lower: boundOf(form.lower, percentage), upper: boundOf(form.upper, percentage) };
	if (bounds.lower === undefined && bounds.upper === undefined) throw new Error("Give a lower or an upper bound.");
	return {
		name: form.name.trim(),
		insight: insight.id,
		subscribed_users: [],
		condition: { type: form.condition },
		config: { type: "TrendsAlertConfig", series_index: Number(form.series) },
		threshold: { configuration: { type: percentage ? "percentage" : "absolute", bounds } },
		calculation_interval: form.interval,
		...(form.webhook && { webhook_url: form.webhook.trim() }),
		...(form.webhook && form.secret && { webhook_secret: form.secret.trim() }),
	};
}

function boundOf(text: string, percentage: boolean): number | undefined {
	if (!text.trim()) return undefined;
	const value = Number(text);
	if (Number.isNaN(value)) throw new Error(`${text} is not a number.`);
	return percentage ? value / 100 : value;
}

/** The rule of an alert in words, such as "below 50 or above 100". */
export function ruleOf(alert: Alert): string {
	const { type, bounds } = alert.threshold.configuration;
	const show = type === "percentage" ? percent : number;
	const parts: string[] = [];
	if (typeof bounds?.lower === "number") parts.push(`below ${show(bounds.lower)}`);
	if (typeof bounds?.upper === "number") parts.push(`above ${show(bounds.upper)}`);
	const what = { absolute_value: "", relative_increase: "increase ", relative_decrease: "decrease " }[alert.condition.type] ?? "";
	return what + parts.join(" or ");
}

/** The series of a trend, or its formulas, that an alert can watch. */
export function seriesOf(insight: Insight): { value: string; label: string }[] {
	const source = sourceOf(insight.query ?? { kind: "" });
	const filter = (source.trendsFilter ?? {}) as {
		formula?: string;
		formulas?: string[];
		formulaNodes?: { formula: string; custom_name?: string }[];
	};
	const formulas =
		filter.formulaNodes?.map((f) => f.custom_name || f.formula) ?? filter.formulas ?? (filter.formula ? [filter.formula] : []);
	const series = Array.isArray(source.series) ? source.series : [];
	const labels: string[] =
		formulas.length > 0
			? formulas
			: series.map((s) => String(s.custom_name || s.name || s.event || (s.id === undefined ? "All events" : `Action ${s.id}`)));
	return labels.map((label, i) => ({ value: String(i), label: `${letterOf(i)}: ${label}` }));
}
