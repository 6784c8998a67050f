import { describe, expect, test } from "vitest";
import {
	type Alert,
	alertBody,
	alertChanges,
	type AlertForm,
	canBeOngoing,
	type Check,
	formOf,
	foundOf,
	ruleOf,
	seriesOf,
} from "../src/pages/insights/alert";

const form: AlertForm = {
	name: " Too few ",
	condition: "absolute_value",
	series: "1",
	percentage: true,
	lower: "50",
	upper: "",
	interval: "daily",
	webhook: "",
	secret: "",
};

describe("the body of a new alert", () => {
	test("a number below a bound", () => {
		expect(alertBody({ id: 12 }, form)).toEqual({
			name: "Too few",
			insight: 12,
			subscribed_users: [],
			condition: { type: "absolute_value" },
			config: { type: "TrendsAlertConfig", series_index: 1 },
			threshold: { configuration: { type: "absolute", bounds: { lower: 50, upper: undefined } } },
			calculation_interval: "daily",
		});
	});
	test("a change in percent, with a webhook", () => {
		const body = alertBody(
			{ id: 1 },
			{ ...form, condition: "relative_increase", lower: "", upper: "12.5", webhook: "https://a.example/", secret: "whsec_x" },
		);
		expect(body.threshold).toEqual({ configuration: { type: "percentage", bounds: { lower: undefined, upper: 0.125 } } });
		expect(body).toMatchObject({ webhook_url: "https://a.example/", webhook_secret: "whsec_x" });
	});
	test("not without bounds, nor with what is no number", () => {
		expect(() => alertBody({ id: 1 }, { ...form, lower: " " })).toThrow("bound");
		expect(() => alertBody({ id: 1 }, { ...form, lower: "many" })).toThrow("many is not a number.");
	});
});

describe("the changes of an alert", () => {
	const alert = {
		id: "a",
		name: "Too few",
		condition: { type: "relative_increase" },
		config: { type: "TrendsAlertConfig", series_index: 1, check_ongoing_interval: true },
		threshold: { configuration: { type: "percentage", bounds: { lower: 0.07, upper: 0.29 } } },
		calculation_interval: "hourly",
		webhook_url: "https://a.example/",
	} as unknown as Alert;
	const began = formOf(alert);
	test("the form begins with what the alert has, in percent", () => {
		expect(began).toEqual({
			name: "Too few",
			condition: "relative_increase",
			series: "1",
			percentage: true,
			lower: "7",
			upper: "29",
			interval: "hourly",
			ongoing: true,
			webhook: "https://a.example/",
			secret: "",
		});
	});
	test("only what was changed is sent, with what the form does not know of it", () => {
		expect(alertChanges(alert, began)).toEqual({});
		expect(alertChanges(alert, { ...began, name: "Fewer ", series: "0" })).toEqual({
			name: "Fewer",
			config: { type: "TrendsAlertConfig", series_index: 0, check_ongoing_interval: true },
		});
		expect(alertChanges(alert, { ...began, lower: "" })).toEqual({
			threshold: { configuration: { type: "percentage", bounds: { lower: undefined, upper: 0.29 } } },
		});
	});
	test("the interval in progress is only compared where it can be, and can be left", () => {
		const config = (ongoing: boolean | null) => ({ type: "TrendsAlertConfig", series_index: 1, check_ongoing_interval: ongoing });
		expect(alertChanges(alert, { ...began, upper: " " })).toEqual({
			config: config(null),
			threshold: { configuration: { type: "percentage", bounds: { lower: 0.07, upper: undefined } } },
		});
		expect(alertChanges(alert, { ...began, condition: "relative_decrease" })).toEqual({
			config: config(null),
			condition: { type: "relative_decrease" },
		});
		expect(alertChanges(alert, { ...began, interval: "daily", ongoing: false })).toEqual({
			config: config(false),
			calculation_interval: "daily",
		});
		expect(canBeOngoing({ ...began, lower: "" })).toBe(true);
	});
	test("an alert that leaves the interval in progress to the server goes on to do so", () => {
		for (const open of [{}, { check_ongoing_interval: null }]) {
			const left = { ...alert, config: { series_index: 1, ...open } };
			expect(alertChanges(left, formOf(left))).toEqual({});
			expect(alertChanges(left, { ...formOf(left), upper: "" })).not.toHaveProperty("config");
		}
	});
	test("a webhook can be taken off, and its secret changed alone", () => {
		expect(alertChanges(alert, { ...began, webhook: "" })).toEqual({ webhook_url: null });
		expect(alertChanges(alert, { ...began, secret: "whsec_x" })).toEqual({ webhook_secret: "whsec_x" });
	});
	test("not to one without bounds", () => {
		expect(() => alertChanges(alert, { ...began, lower: "", upper: "" })).toThrow("bound");
	});
});

test("the number of a check has no unit, as the rule may have been another", () => {
	const found = (calculated_value: number | null) => foundOf({ calculated_value } as Check);
	expect([1234.5, 0.3125, null].map(found)).toEqual(["1,234.5", "0.3125", "–"]);
});

test("the rule in words", () => {
	const alert = (type: string, configuration: unknown) => ({ condition: { type }, threshold: { configuration } }) as Alert;
	expect(ruleOf(alert("absolute_value", { type: "absolute", bounds: { lower: 50, upper: 1000 } }))).toBe("below 50 or above 1,000");
	expect(ruleOf(alert("relative_decrease", { type: "percentage", bounds: { upper: 0.25 } }))).toBe("decrease above 25%");
});

test("the series to choose from are those of the result", () => {
	const series = [
		{ kind: "EventsNode", event: "a" },
		{ kind: "EventsNode", event: null },
		{ kind: "ActionsNode", id: 3 },
	];
	const insight = (more: object) => ({
		id: 1,
		short_id: "x",
		name: "",
		derived_name: null,
		query: { kind: "TrendsQuery", series, ...more },
	});
	expect(seriesOf(insight({})).map((s) => s.label)).toEqual(["A: a", "B: All events", "C: Action 3"]);
	expect(seriesOf(insight({ trendsFilter: { formula: "A/B" } })).map((s) => s.label)).toEqual(["A: A/B"]);
});
