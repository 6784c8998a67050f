import { changedFields } from "../../data/draft";
import { readTags } from "../../data/tags";
import { clock, projectZone, startOfDay } from "../../data/time";
import type { Endpoint, Version } from "./api";

/** A time of a record as a field for dates holds it: its day in the project's time zone. */
const dayOf = (time: string | null) => (time === null ? "" : clock(time, projectZone()).slice(0, 10));

/** The time that a field for dates stands for: the start of its day, or what was there if the day is the same. */
const timeOf = (day: string, before: string | null) =>
	day === "" ? null : day === dayOf(before) ? before : startOfDay(day, projectZone());

/** What the form of a version begins with. */
export const versionForm = (v: Version) => ({
	description: v.description,
	freshness: String(v.data_freshness_seconds),
	active: v.is_active,
	deprecated: dayOf(v.deprecated_at),
	sunset: dayOf(v.sunset_at),
});

export type VersionForm = ReturnType<typeof versionForm>;

/** What of a version's form is sent. */
const versionBody = (form: VersionForm, before: Version) => ({
	description: form.description,
	data_freshness_seconds: Number(form.freshness),
	deprecated_at: timeOf(form.deprecated, before.deprecated_at),
	sunset_at: timeOf(form.sunset, before.sunset_at),
	is_active: form.active,
});

/** The fields of a version that its form changes. */
export const versionChanges = (form: VersionForm, version: Version) =>
	changedFields(versionBody(form, version), versionBody(versionForm(version), version));

/** What the form of an endpoint begins with. */
export const endpointForm = (e: Endpoint) => ({ active: e.is_active, rate: e.rate_limit ?? "", tags: e.tags.join(", ") });

export type EndpointForm = ReturnType<typeof endpointForm>;

/** What of an endpoint's form is sent. */
const endpointBody = (form: EndpointForm) => ({
	is_active: form.active,
	rate_limit: form.rate.trim() || null,
	tags: readTags(form.tags),
});

/** The fields of an endpoint that its form changes. */
export const endpointChanges = (form: EndpointForm, endpoint: Endpoint) =>
	changedFields(endpointBody(form), endpointBody(endpointForm(endpoint)));
