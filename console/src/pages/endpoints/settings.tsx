import { useState } from "preact/hooks";
import { readTags } from "../../data/tags";
import { clock, projectZone, startOfDay } from "../../data/time";
import { same } from "../../insights/model";
import { can } from "../../session";
import { Button, Card, Checkbox, Field, Select, TextArea, TextInput } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { duration } from "../../ui/format";
import { AskBeforeLeaving } from "../../ui/leaving";
import { changeEndpoint, type Endpoint, type Version, versionChoices } from "./api";
import type { TabProps } from "./endpoint";

/** What belongs to the endpoint, and what belongs to one of its versions. */
export function SettingsTab({ endpoint, versions, reload }: TabProps) {
	const [wanted, setWanted] = useState("");
	const version = versions.find((v) => String(v.version) === wanted) ?? versions.find((v) => v.is_current);
	const [edited, setEdited] = useState<Record<string, VersionForm>>({});
	const formOf = (v: Version) => edited[textOf(v)] ?? versionForm(v);
	const changed = versions.filter((v) => !same(formOf(v), versionForm(v))).map((v) => `v${v.version}`);
	return (
		<div class="endpoints-stack">
			{version && (
				<Card
					title="Version"
					actions={
						<Field label="Version" inline hideLabel>
							{(id) => <Select id={id} value={String(version.version)} choices={versionChoices(versions)} onValue={setWanted} />}
						</Field>
					}
				>
					<VersionSettings
						name={endpoint.name}
						version={version}
						form={formOf(version)}
						onForm={(form) => setEdited({ ...edited, [textOf(version)]: form })}
						onSaved={reload}
					/>
				</Card>
			)}
			<Card title="Endpoint">
				<EndpointSettings
					key={JSON.stringify([endpoint.is_active, endpoint.rate_limit, endpoint.tags])}
					endpoint={endpoint}
					onSaved={reload}
				/>
			</Card>
			{changed.length > 0 && can("endpoint:write") && <AskBeforeLeaving what={`The changes of ${changed.join(", ")} are not saved.`} tab />}
		</div>
	);
}

/** A time of a record as a field for dates holds it: its day in the project's time zone. */
const dayOf = (time: string | null) => (time === null ? "" : clock(time, projectZone()).slice(0, 10));

/** The time that a field for dates stands for: the start of its day, or what was there if the day is the same. */
const timeOf = (day: string, before: string | null) =>
	day === "" ? null : day === dayOf(before) ? before : startOfDay(day, projectZone());

/** What the form of a version begins with. */
const versionForm = (v: Version) => ({
	description: v.description,
	freshness: String(v.data_freshness_seconds),
	active: v.is_active,
	deprecated: dayOf(v.deprecated_at),
	sunset: dayOf(v.sunset_at),
});

type VersionForm = ReturnType<typeof versionForm>;

/** What of a version its form changes, as a text. While that is the same, what was typed stays. */
const textOf = (v: Version): string =>
	JSON.stringify([v.version, v.description, v.data_freshness_seconds, v.is_active, v.deprecated_at, v.sunset_at]);

function VersionSettings({
	name,
	version,
	form,
	onForm,
	onSaved,
}: {
	name: string;
	version: Version;
	form: VersionForm;
	onForm: (form: VersionForm) => void;
	onSaved: () => void;
}) {
	const set = (changes: Partial<VersionForm>) => onForm({ ...form, ...changes });
	const seconds = Number(form.freshness);
	const wrong = Number.isSafeInteger(seconds) && form.freshness.trim() !== "" && seconds >= 0 ? "" : "A whole number of seconds";
	const save = async (event: Event) => {
		event.preventDefault();
		const body = {
			version: version.version,
			description: form.description,
			data_freshness_seconds: seconds,
			deprecated_at: timeOf(form.deprecated, version.deprecated_at),
			sunset_at: timeOf(form.sunset, version.sunset_at),
			...(form.active !== version.is_active && { is_active: form.active }),
		};
		if (await attempt(() => changeEndpoint(name, body), `v${version.version} saved`)) onSaved();
	};
	return (
		<form class="form" onSubmit={save}>
			<Field label="Description">
				{(id) => <TextArea id={id} value={form.description} onValue={(description) => set({ description })} />}
			</Field>
			<Field
				label="Fresh for, in seconds"
				error={wrong}
				hint={wrong ? undefined : `Results are computed again after ${duration(seconds)}.`}
			>
				{(id) => <TextInput id={id} inputMode="numeric" value={form.freshness} onValue={(freshness) => set({ freshness })} />}
			</Field>
			<div class="endpoints-pair">
				<Field label="Deprecated since" hint={`From the start of the day in ${projectZone()}, runs say so in a header.`}>
					{(id) => <TextInput id={id} type="date" value={form.deprecated} onValue={(deprecated) => set({ deprecated })} />}
				</Field>
				<Field label="Ends on" hint="A header announces it. The version does not end by itself.">
					{(id) => <TextInput id={id} type="date" value={form.sunset} onValue={(sunset) => set({ sunset })} />}
				</Field>
			</div>
			<Checkbox label="This version can be run" checked={form.active} onValue={(active) => set({ active })} />
			<div class="actions">
				<Button type="submit" look="primary" disabled={wrong !== "" || !can("endpoint:write")}>
					Save version
				</Button>
			</div>
		</form>
	);
}

function EndpointSettings({ endpoint, onSaved }: { endpoint: Endpoint; onSaved: () => void }) {
	const [active, setActive] = useState(endpoint.is_active);
	const [rate, setRate] = useState(endpoint.rate_limit ?? "");
	const [tags, setTags] = useState(endpoint.tags.join(", "));
	const body = { is_active: active, rate_limit: rate.trim() || null, tags: readTags(tags) };
	const changed = !same(body, { is_active: endpoint.is_active, rate_limit: endpoint.rate_limit, tags: endpoint.tags });
	const save = async (event: Event) => {
		event.preventDefault();
		if (await attempt(() => changeEndpoint(endpoint.name, body), "Endpoint saved")) onSaved();
	};
	return (
		<form class="form" onSubmit={save}>
			<Field
				label="Rate limit"
				hint="Queries that all its runs together may cause, such as 60/m. Answers from the cache do not count. Empty: the server's."
			>
				{(id) => <TextInput id={id} value={rate} onValue={setRate} placeholder="The server's" />}
			</Field>
			<Field label="Tags" hint="Separated by commas.">
				{(id) => <TextInput id={id} value={tags} onValue={setTags} />}
			</Field>
			<Checkbox label="The endpoint can be run" checked={active} onValue={setActive} />
			<div class="actions">
				<Button type="submit" look="primary" disabled={!can("endpoint:write")}>
					Save endpoint
				</Button>
			</div>
			{changed && can("endpoint:write") && <AskBeforeLeaving what="The changes of the endpoint are not saved." tab />}
		</form>
	);
}
