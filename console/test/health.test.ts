import { expect, test } from "vitest";
import { alertsState, captureState, databaseState, keptState, queriesState, type Status, tablesState } from "../src/pages/health/api";

const quiet = {
	clickhouse: { reachable: true },
	capture: { dropped_events: 0, lag_seconds: 0, set_aside_events: 0, waiting_events: 0 },
	queries: { running: 1, waiting: 0, max_running: 3, max_waiting: 24 },
	materialized: { tables: 2, ready: 2, failing: 0 },
	alerts: { total: 1, firing: 0, errored: 0, waiting_deliveries: 0 },
} as unknown as Status;

const tones = (status: Status) => [databaseState, captureState, queriesState, tablesState, alertsState].map((state) => state(status).tone);

test("retention is told in days", () => {
	expect(keptState({ ...quiet, events: { retention_days: null, from: null } }).words).toBe("Kept forever");
	expect(keptState({ ...quiet, events: { retention_days: 365, from: "2025-01-01T00:00:00Z" } }).words).toBe("Kept for 365 days");
});

test("what is quiet is good", () => expect(tones(quiet)).toEqual(["good", "good", "good", "good", "good"]));

test("what fails is bad", () => {
	expect(
		tones({
			...quiet,
			clickhouse: { ...quiet.clickhouse, reachable: false },
			queries: { ...quiet.queries, waiting: 24 },
			materialized: { ...quiet.materialized, failing: 1 },
			alerts: { ...quiet.alerts, errored: 1 },
		}),
	).toEqual(["bad", "good", "bad", "bad", "bad"]);
});

test("a server that captures nothing says so", () => expect(captureState({ ...quiet, capture: null }).words).toBe("Off"));

test("what is late is a warning", () => {
	expect(
		tones({
			...quiet,
			capture: { ...quiet.capture, lag_seconds: 90 } as Status["capture"],
			queries: { ...quiet.queries, waiting: 1 },
			materialized: { ...quiet.materialized, ready: 1 },
			alerts: { ...quiet.alerts, firing: 1 },
		}),
	).toEqual(["good", "warn", "warn", "warn", "warn"]);
});
