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
import {
	type Alert,
	alertBody,
	alertChanges,
	type AlertForm,
	canBeOngoing,
	type Check,
	conditions,
	formOf,
	foundOf,
	intervals,
	ruleOf,
	seriesOf,
} from "./alert";

/** The alerts of an insight. */
export function AlertsDialog({ insight, onClose }: { insight: Insight; onClose: () => void }) {
	const list = useResource((signal) => get<Page<Alert>>("alerts/", { insight_id: insight.id, limit: 100 }, signal), [insight.id]);
	const [editing, setEditing] = useState<Alert | "new" | null>(null);
	const [checked, setChecked] = useState<Alert | null>(null);
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
			cell: (a) => (
				<div class="row-actions">
					<Button small onClick={() => setChecked(a)} aria-label={`Checks of ${a.name}`}>
						Checks
					</Button>
					{writes && (
						<>
							<Button small onClick={() => setEditing(a)} aria-label={`Edit ${a.name}`}>
								Edit
							</Button>
							<Button small onClick={() => toggle(a)}>
								{a.enabled ? "Disable" : "Enable"}
							</Button>
							<Button small look="danger" onClick={() => setDeleting(a)} aria-label={`Delete ${a.name}`}>
								Delete
							</Button>
						</>
					)}
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
						<Button look="primary" onClick={() => setEditing("new")}>
							New alert
						</Button>
					</div>
				)}
			</div>
			{editing && (
				<EditAlert
					insight={insight}
					alert={editing === "new" ? undefined : editing}
					onClose={() => setEditing(null)}
					onSaved={list.reload}
				/>
			)}
			{checked && <ChecksDialog alert={checked} onClose={() => setChecked(null)} />}
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
	return alert.enabled ? <StateBadge state={alert.state} /> : <Badge>Disabled</Badge>;
}

function StateBadge({ state }: { state: string }) {
	const tone = { Firing: "bad", Errored: "warn", Snoozed: "plain" }[state] ?? "good";
	return <Badge tone={tone as "bad"}>{state}</Badge>;
}

/** The newest checks of an alert. */
function ChecksDialog({ alert, onClose }: { alert: Alert; onClose: () => void }) {
	const found = useResource((signal) => get<{ checks: Check[] }>(`alerts/${alert.id}/`, {}, signal), [alert.id]);
	const columns: Column<Check>[] = [
		{ name: "time", title: "Checked", cell: (c) => <span title={c.created_at}>{ago(c.created_at)}</span> },
		{ name: "value", title: "Value", cell: foundOf },
		{ name: "state", title: "State", cell: (c) => <StateBadge state={c.state} /> },
		{ name: "outcome", title: "Outcome", cell: (c) => c.error?.message ?? (c.targets_notified ? "A message was sent" : "") },
	];
	return (
		<Dialog title={`Checks of ${alert.name}`} onClose={onClose}>
			<Loaded of={found}>
				{({ checks }) =>
					checks.length === 0 ? (
						<Empty title="No checks yet" />
					) : (
						<Table label="Checks" columns={columns} rows={checks} keyOf={(c) => c.id} />
					)
				}
			</Loaded>
		</Dialog>
	);
}

const newForm = (insight: Insight): AlertForm => ({
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

/** The form of an alert, or of a new one. */
function EditAlert({ insight, alert, onClose, onSaved }: { insight: Insight; alert?: Alert; onClose: () => void; onSaved: () => void }) {
	const series = seriesOf(insight);
	const [form, setForm] = useState<AlertForm>(() => (alert ? formOf(alert) : newForm(insight)));
	const set = (changes: Partial<AlertForm>) => setForm({ ...form, ...changes });
	const relative = form.condition !== "absolute_value";
	const unit = relative && form.percentage ? " (%)" : "";
	const save = async () => {
		if (alert) await patch(`alerts/${alert.id}/`, alertChanges(alert, form));
		else await post("alerts/", alertBody(insight, form));
		onSaved();
	};
	return (
		<FormDialog title={alert ? `Edit ${alert.name}` : "New alert"} action={alert ? "Save" : "Create"} onSubmit={save} onClose={onClose}>
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
			{alert && canBeOngoing(form) && (
				<Checkbox label="Compare the interval in progress" checked={form.ongoing ?? false} onValue={(ongoing) => set({ ongoing })} />
			)}
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
				<Field
					label="Secret of the webhook"
					hint={`Signs the messages: 16 to 256 characters, or whsec_ and base64. ${alert ? "Leave it empty to keep the current one." : "It is not shown again."}`}
				>
					{(id) => <TextInput id={id} type="password" value={form.secret} onValue={(secret) => set({ secret })} />}
				</Field>
			)}
		</FormDialog>
	);
}
