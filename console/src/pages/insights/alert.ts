import { sourceOf } from "../../api/query";
import { changedFields } from "../../data/draft";
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
	config: { series_index: number; check_ongoing_interval?: boolean | null } | null;
	threshold: { configuration: { type: "absolute" | "percentage"; bounds?: { lower?: number | null; upper?: number | null } } };
	last_checked_at?: string | null;
	webhook_url?: string | null;
}

/** A check of an alert. */
export interface Check {
	id: string;
	created_at: string;
	calculated_value: number | null;
	state: string;
	targets_notified: boolean;
	/** Why it found no value. */
	error: { message: string } | null;
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

/** What the form of an alert holds. Bounds are texts, in percent where the threshold is one. */
export interface AlertForm {
	name: string;
	condition: Condition;
	series: string;
	percentage: boolean;
	lower: string;
	upper: string;
	interval: string;
	/** Whether the interval in progress is compared. If undefined, the server chooses. */
	ongoing?: boolean;
	webhook: string;
	secret: string;
}

/** What the form of an alert begins with. */
export function formOf(alert: Alert): AlertForm {
	const { type, bounds } = alert.threshold.configuration;
	const text = (bound: number | null | undefined) =>
		typeof bound !== "number" ? "" : String(type === "percentage" ? Number((bound * 100).toPrecision(12)) : bound);
	return {
		name: alert.name,
		condition: alert.condition.type,
		series: String(alert.config?.series_index ?? 0),
		percentage: type === "percentage" || alert.condition.type === "absolute_value",
		lower: text(bounds?.lower),
		upper: text(bounds?.upper),
		interval: alert.calculation_interval,
		ongoing: alert.config?.check_ongoing_interval ?? undefined,
		webhook: alert.webhook_url ?? "",
		secret: "",
	};
}

/** The body that creates an alert. It throws when the form is not complete. */
export function alertBody(insight: Pick<Insight, "id">, form: AlertForm): Record<string, unknown> {
	return {
		...ruleFields(form),
		insight: insight.id,
		subscribed_users: [],
		...(form.webhook && { webhook_url: form.webhook.trim() }),
		...(form.webhook && form.secret && { webhook_secret: form.secret.trim() }),
	};
}

/**
 * The body that changes an alert: the fields that differ from what the form began with. What the form does not know of them stays. It throws
 * when the form is not complete.
 */
export function alertChanges(alert: Alert, form: AlertForm): Record<string, unknown> {
	const bodyOf = (from: AlertForm) => ({ ...ruleFields(from, alert), webhook_url: from.webhook.trim() || null });
	const secret = form.webhook && form.secret.trim();
	return { ...changedFields(bodyOf(form), bodyOf(formOf(alert))), ...(secret && { webhook_secret: secret }) };
}

/** The rule and the name in a form, over those that an alert has. */
function ruleFields(form: AlertForm, alert?: Alert): Record<string, unknown> {
	const percentage = form.percentage && form.condition !== "absolute_value";
	const bounds = { lower: boundOf(form.lower, percentage), upper: boundOf(form.upper, percentage) };
	if (bounds.lower === undefined && bounds.upper === undefined) throw new Error("Give a lower or an upper bound.");
	return {
		name: form.name.trim(),
		condition: { ...alert?.condition, type: form.condition },
		config: {
			type: "TrendsAlertConfig",
			...alert?.config,
			series_index: Number(form.series),
			...(alert && { check_ongoing_interval: ongoingOf(form) }),
		},
		threshold: { configuration: { ...alert?.threshold.configuration, type: percentage ? "percentage" : "absolute", bounds } },
		calculation_interval: form.interval,
	};
}

/** Reports whether an alert can compare the interval in progress. Too small a number, or a decrease, is only known once it has ended. */
export const canBeOngoing = (form: AlertForm): boolean => form.upper.trim() !== "" && form.condition !== "relative_decrease";

/** What the form says of the interval in progress. The server may have set it by itself, so it is taken back where it no longer fits. */
function ongoingOf(form: AlertForm): boolean | null | undefined {
	return form.ongoing === undefined || canBeOngoing(form) ? form.ongoing : null;
}

function boundOf(text: string, percentage: boolean): number | undefined {
	if (!text.trim()) return undefined;
	const value = Number(text);
	if (Number.isNaN(value)) throw new Error(`${text} is not a number.`);
	return percentage ? value / 100 : value;
}

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 4 });

/**
 * The number that a check found. A change relative to the number before stays a share, such as 0.31: the rule may have been another then, so
 * that its unit is not known.
 */
export const foundOf = (check: Check): string => (check.calculated_value === null ? "–" : plain.format(check.calculated_value));

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
