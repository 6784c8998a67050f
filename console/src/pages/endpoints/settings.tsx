import { useState } from "preact/hooks";
import { can } from "../../session";
import { Button, Card, Checkbox, Field, Select, TextInput } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { duration } from "../../ui/format";
import { changeEndpoint, type Version } from "./api";
import type { TabProps } from "./endpoint";

/** What belongs to the endpoint, and what belongs to one of its versions. */
export function SettingsTab({ endpoint, versions, reload }: TabProps) {
	const [wanted, setWanted] = useState("");
	const version = versions.find((v) => String(v.version) === wanted) ?? versions.find((v) => v.is_current);
	return (
		<div class="endpoints-stack">
			{version && (
				<Card
					title="Version"
					actions={
						<Field label="Version" inline hideLabel>
							{(id) => (
								<Select
									id={id}
									value={String(version.version)}
									choices={versions.map((v) => ({ value: String(v.version), label: `v${v.version}${v.is_current ? " (current)" : ""}` }))}
									onValue={setWanted}
								/>
							)}
						</Field>
					}
				>
					<VersionSettings key={fieldsOf(version)} name={endpoint.name} version={version} onSaved={reload} />
				</Card>
			)}
			<Card title="Endpoint">
				<EndpointSettings
					key={JSON.stringify([endpoint.is_active, endpoint.rate_limit, endpoint.tags])}
					name={endpoint.name}
					active={endpoint.is_active}
					rate={endpoint.rate_limit ?? ""}
					tags={endpoint.tags}
					onSaved={reload}
				/>
			</Card>
		</div>
	);
}

/** What the form of a version shows, as a text: saving the other form leaves it, so that what was typed here stays. */
const fieldsOf = (v: Version): string =>
	JSON.stringify([v.version, v.description, v.data_freshness_seconds, v.is_active, v.deprecated_at, v.sunset_at]);

/** A date of a record as a field for dates holds it. */
const dayOf = (time: string | null) => time?.slice(0, 10) ?? "";

/** The time that a field for dates stands for: its day, or what was there if the day is the same. */
const timeOf = (day: string, before: string | null) => (day === "" ? null : day === dayOf(before) ? before : `${day}T00:00:00Z`);

function VersionSettings({ name, version, onSaved }: { name: string; version: Version; onSaved: () => void }) {
	const [description, setDescription] = useState(version.description);
	const [freshness, setFreshness] = useState(String(version.data_freshness_seconds));
	const [active, setActive] = useState(version.is_active);
	const [deprecated, setDeprecated] = useState(dayOf(version.deprecated_at));
	const [sunset, setSunset] = useState(dayOf(version.sunset_at));
	const seconds = Number(freshness);
	const wrong = Number.isSafeInteger(seconds) && freshness.trim() !== "" && seconds >= 0 ? "" : "A whole number of seconds";
	const save = async (event: Event) => {
		event.preventDefault();
		const body = {
			version: version.version,
			description,
			data_freshness_seconds: seconds,
			deprecated_at: timeOf(deprecated, version.deprecated_at),
			sunset_at: timeOf(sunset, version.sunset_at),
			...(active !== version.is_active && { is_active: active }),
		};
		if (await attempt(() => changeEndpoint(name, body), `v${version.version} saved`)) onSaved();
	};
	return (
		<form class="form" onSubmit={save}>
			<Field label="Description">{(id) => <TextInput id={id} value={description} onValue={setDescription} spellcheck />}</Field>
			<Field
				label="Fresh for, in seconds"
				error={wrong}
				hint={wrong ? undefined : `Results are computed again after ${duration(seconds)}.`}
			>
				{(id) => <TextInput id={id} inputMode="numeric" value={freshness} onValue={setFreshness} />}
			</Field>
			<div class="endpoints-pair">
				<Field label="Deprecated since" hint="Runs then say so in a header.">
					{(id) => <TextInput id={id} type="date" value={deprecated} onValue={setDeprecated} />}
				</Field>
				<Field label="Ends on" hint="A header announces it. The version does not end by itself.">
					{(id) => <TextInput id={id} type="date" value={sunset} onValue={setSunset} />}
				</Field>
			</div>
			<Checkbox label="This version can be run" checked={active} onValue={setActive} />
			<div class="actions">
				<Button type="submit" look="primary" disabled={wrong !== "" || !can("endpoint:write")}>
					Save version
				</Button>
			</div>
		</form>
	);
}

function EndpointSettings({
	name,
	active: before,
	rate: rateBefore,
	tags: tagsBefore,
	onSaved,
}: {
	name: string;
	active: boolean;
	rate: string;
	tags: string[];
	onSaved: () => void;
}) {
	const [active, setActive] = useState(before);
	const [rate, setRate] = useState(rateBefore);
	const [tags, setTags] = useState(tagsBefore.join(", "));
	const save = async (event: Event) => {
		event.preventDefault();
		const list = tags
			.split(",")
			.map((tag) => tag.trim())
			.filter(Boolean);
		const body = { is_active: active, rate_limit: rate.trim() || null, tags: list };
		if (await attempt(() => changeEndpoint(name, body), "Endpoint saved")) onSaved();
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
		</form>
	);
}
