import { useState } from "preact/hooks";
import { useEdits } from "../../data/draft";
import { projectZone } from "../../data/time";
import { same } from "../../insights/model";
import { can } from "../../session";
import { Button, Card, Checkbox, Field, Select, TextArea, TextInput } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { duration } from "../../ui/format";
import { AskBeforeLeaving } from "../../ui/leaving";
import { changeEndpoint, type Endpoint, type Version, versionChoices } from "./api";
import { endpointChanges, endpointForm, type EndpointForm, versionChanges, type VersionForm, versionForm } from "./changes";
import type { TabProps } from "./endpoint";

/** What belongs to the endpoint, and what belongs to one of its versions. */
export function SettingsTab({ endpoint, versions, reload, changed: shown }: TabProps) {
	const [wanted, setWanted] = useState("");
	const version = versions.find((v) => String(v.version) === wanted) ?? versions.find((v) => v.is_current);
	const edits = useEdits(versionForm);
	const changed = versions.filter((v) => !same(edits.of(v.version, v), versionForm(v))).map((v) => `v${v.version}`);
	const show = (answer: Endpoint | Version) => {
		shown(answer);
		reload();
	};
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
						form={edits.of(version.version, version)}
						onForm={(form) => edits.edit(version.version, version, form)}
						onSaved={(sent, answer) => {
							edits.saved(version.version, sent);
							show(answer);
						}}
					/>
				</Card>
			)}
			<Card title="Endpoint">
				<EndpointSettings endpoint={endpoint} onSaved={show} />
			</Card>
			{changed.length > 0 && can("endpoint:write") && <AskBeforeLeaving what={`The changes of ${changed.join(", ")} are not saved.`} tab />}
		</div>
	);
}

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
	onSaved: (sent: VersionForm, answer: Endpoint) => void;
}) {
	const set = (changes: Partial<VersionForm>) => onForm({ ...form, ...changes });
	const seconds = Number(form.freshness);
	const wrong = Number.isSafeInteger(seconds) && form.freshness.trim() !== "" && seconds >= 0 ? "" : "A whole number of seconds";
	const save = async (event: Event) => {
		event.preventDefault();
		const body = { version: version.version, ...versionChanges(form, version) };
		await attempt(async () => onSaved(form, await changeEndpoint(name, body)), `v${version.version} saved`);
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

function EndpointSettings({ endpoint, onSaved }: { endpoint: Endpoint; onSaved: (answer: Endpoint) => void }) {
	const edits = useEdits(endpointForm);
	const form = edits.of(0, endpoint);
	const set = (changes: Partial<EndpointForm>) => edits.edit(0, endpoint, { ...form, ...changes });
	const body = endpointChanges(form, endpoint);
	const save = async (event: Event) => {
		event.preventDefault();
		await attempt(async () => {
			const answer = await changeEndpoint(endpoint.name, body);
			edits.saved(0, form);
			onSaved(answer);
		}, "Endpoint saved");
	};
	return (
		<form class="form" onSubmit={save}>
			<Field
				label="Rate limit"
				hint="Queries that all its runs together may cause, such as 60/m. Answers from the cache do not count. Empty: the server's."
			>
				{(id) => <TextInput id={id} value={form.rate} onValue={(rate) => set({ rate })} placeholder="The server's" />}
			</Field>
			<Field label="Tags" hint="Separated by commas.">
				{(id) => <TextInput id={id} value={form.tags} onValue={(tags) => set({ tags })} />}
			</Field>
			<Checkbox label="The endpoint can be run" checked={form.active} onValue={(active) => set({ active })} />
			<div class="actions">
				<Button type="submit" look="primary" disabled={!can("endpoint:write")}>
					Save endpoint
				</Button>
			</div>
			{Object.keys(body).length > 0 && can("endpoint:write") && <AskBeforeLeaving what="The changes of the endpoint are not saved." tab />}
		</form>
	);
}
