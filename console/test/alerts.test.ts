import { describe, expect, test } from "vitest";
import { type Alert, alertBody, type AlertForm, ruleOf, seriesOf } from "../src/pages/insights/alert";

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
