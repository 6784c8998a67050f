import { useState } from "preact/hooks";
import { get, type Page, patch, post, remove } from "../../api/client";
import { useResource } from "../../api/use";
import { type Insight, titleOf } from "../../insights/model";
import { can } from "../../session";
import { Badge, Button, Checkbox, Empty, Field, Loaded, Select, TextInput } from "../../ui/basics";
import { attempt, Dialog } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { ago } from "../../ui/format";
import { type Column, Table } from "../../ui/table";
import { type Alert, alertBody, type AlertForm, conditions, intervals, ruleOf, seriesOf } from "./alert";

/** The alerts of an insight. */
export function AlertsDialog({ insight, onClose }: { insight: Insight; onClose: () => void }) {
	const list = useResource((signal) => get<Page<Alert>>("alerts/", { insight_id: insight.id, limit: 100 }, signal), [insight.id]);
	const [creating, setCreating] = useState(false);
	const [deleting, setDeleting] = useState<Alert | null>(null);
	const writes = can("alert:write");
	const toggle = (a: Alert) => attempt(() => patch(`alerts/${a.id}/`, { enabled: !a.enabled }).then(list.reload));
	const columns: Column<Alert>[] = [
		{ name: "name", title: "Name", cell: (a) => a.name },
		{ name: "rule", title: "Fires when", cell: ruleOf },
		{ name: "state", title: "State", cell: (a) => <State alert={a} /> },
		{ name: "checked", title: "Checked", extra: true, cell: (a) => ago(a.last_checked_at) },
		{
			name: "actions",
			title: <span class="visually-hidden">Actions</span>,
			cell: (a) =>
				writes && (
					<div class="row-actions">
						<Button small onClick={() => toggle(a)}>
							{a.enabled ? "Disable" : "Enable"}
						</Button>
						<Button small look="danger" onClick={() => setDeleting(a)} aria-label={`Delete ${a.name}`}>
							Delete
						</Button>
					</div>
				),
		},
	];
	return (
		<Dialog title="Alerts" onClose={onClose} wide>
			<div class="stack">
				<Loaded of={list}>
					{({ results }) =>
						results.length === 0 ? (
							<Empty title="No alerts yet">
								<p>An alert sends a message to a webhook when the number crosses a bound.</p>
							</Empty>
						) : (
							<Table label="Alerts" columns={columns} rows={results} keyOf={(a) => a.id} />
						)
					}
				</Loaded>
				{writes && (
					<div class="actions">
						<Button look="primary" onClick={() => setCreating(true)}>
							New alert
						</Button>
					</div>
				)}
			</div>
			{creating && <NewAlert insight={insight} onClose={() => setCreating(false)} onMade={list.reload} />}
			{deleting && (
				<FormDialog
					title={`Delete ${deleting.name}?`}
					action="Delete"
					danger
					onSubmit={() => remove(`alerts/${deleting.id}/`).then(list.reload)}
					onClose={() => setDeleting(null)}
				>
					<p>Its rule is no longer checked.</p>
				</FormDialog>
			)}
		</Dialog>
	);
}

function State({ alert }: { alert: Alert }) {
	if (!alert.enabled) return <Badge>Disabled</Badge>;
	const tone = { Firing: "bad", Errored: "warn", Snoozed: "plain" }[alert.state] ?? "good";
	return <Badge tone={tone as "bad"}>{alert.state}</Badge>;
}

function NewAlert({ insight, onClose, onMade }: { insight: Insight; onClose: () => void; onMade: () => void }) {
	const series = seriesOf(insight);
	const [form, setForm] = useState<AlertForm>({
		name: titleOf(insight),
		condition: "absolute_value",
		series: "0",
		percentage: true,
		lower: "",
		upper: "",
		interval: "daily",
		webhook: "",
		secret: "",
	});
	const set = (changes: Partial<AlertForm>) => setForm({ ...form, ...changes });
	const relative = form.condition !== "absolute_value";
	const unit = relative && form.percentage ? " (%)" : "";
	const save = async () => {
		await post("alerts/", alertBody(insight, form));
		onMade();
	};
	return (
		<FormDialog title="New alert" action="Create" onSubmit={save} onClose={onClose}>
			<Field label="Name">{(id) => <TextInput id={id} value={form.name} onValue={(name) => set({ name })} required />}</Field>
			{series.length > 1 && (
				<Field label="Series">{(id) => <Select id={id} value={form.series} choices={series} onValue={(s) => set({ series: s })} />}</Field>
			)}
			<Field label="What is compared">
				{(id) => <Select id={id} value={form.condition} choices={conditions} onValue={(condition) => set({ condition })} />}
			</Field>
			{relative && <Checkbox label="In percent" checked={form.percentage} onValue={(percentage) => set({ percentage })} />}
			<div class="insight-row">
				<Field label={`Fires below${unit}`}>
					{(id) => <TextInput id={id} inputMode="decimal" value={form.lower} onValue={(lower) => set({ lower })} />}
				</Field>
				<Field label={`Fires above${unit}`}>
					{(id) => <TextInput id={id} inputMode="decimal" value={form.upper} onValue={(upper) => set({ upper })} />}
				</Field>
			</div>
			<Field label="Checked">
				{(id) => <Select id={id} value={form.interval} choices={intervals} onValue={(interval) => set({ interval })} />}
			</Field>
			<Field label="Webhook" hint="Where messages go. Without one they go to the operator's, if there is one.">
				{(id) => (
					<TextInput
						id={id}
						type="url"
						value={form.webhook}
						onValue={(webhook) => set({ webhook })}
						placeholder="https://hooks.example.com/…"
					/>
				)}
			</Field>
			{form.webhook && (
				<Field label="Secret of the webhook" hint="Signs the messages: 16 to 256 characters, or whsec_ and base64. It is not shown again.">
					{(id) => <TextInput id={id} type="password" value={form.secret} onValue={(secret) => set({ secret })} />}
				</Field>
			)}
		</FormDialog>
	);
}
