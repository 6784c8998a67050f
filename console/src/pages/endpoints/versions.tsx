import { useState } from "preact/hooks";
import { navigate, pageAddress } from "../../router";
import { When } from "../../data/time";
import { sourceOf } from "../../api/query";
import { can } from "../../session";
import { Badge, Button, Card, Checkbox, Field, Select } from "../../ui/basics";
import { attempt, Dialog, toast } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { Menu, type MenuItem } from "../../ui/menu";
import { type Column, Table } from "../../ui/table";
import {
	authorOf,
	type Change,
	changeEndpoint,
	type Changes,
	comparable,
	promote,
	queryOf,
	rollBack,
	textOf,
	type Version,
	versionChoices,
} from "./api";
import { MissingVariables, SQLField, useMissingVariables } from "./create";
import { type DiffLine, diffLines } from "./diff";
import type { TabProps } from "./endpoint";

/** The versions of an endpoint: what they are, how they differ, and which one runs. */
export function VersionsTab({ endpoint, versions, reload, setForm }: TabProps) {
	const [editing, setEditing] = useState<Version | "new" | null>(null);
	const [reported, setReported] = useState<Changes | null>(null);
	const [seen, setSeen] = useState<Version | null>(null);
	const current = versions.find((v) => v.is_current);
	const act = async (work: () => Promise<{ changes?: Changes | null; current_version: number }>, done: string) => {
		const ok = await attempt(async () => {
			const { changes } = await work();
			setReported(changes ?? null);
		}, done);
		if (ok) reload();
	};
	const tryVersion = (v: Version) => {
		setForm({ version: v.is_current ? "" : String(v.version) });
		navigate(pageAddress("endpoints", endpoint.name));
	};
	const itemsOf = (v: Version): MenuItem[] => [
		{ label: "Show query", onSelect: () => setSeen(v) },
		{ label: "Try it", onSelect: () => tryVersion(v) },
		...(can("endpoint:write") ? changesOf(v) : []),
	];
	const changesOf = (v: Version): MenuItem[] => [
		...(v.is_draft ? [{ label: "Edit draft", onSelect: () => setEditing(v) }] : []),
		...(v === comparable(versions)
			? [
					{
						label: "What breaks",
						onSelect: () =>
							act(() => changeEndpoint(endpoint.name, { query: v.query, draft: true }), `Compared with v${endpoint.current_version}`),
					},
				]
			: []),
		...(v.is_current
			? []
			: [
					{
						label: "Promote",
						disabled: !v.is_active,
						onSelect: () => act(() => promote(endpoint.name, v.version), `v${v.version} is current now`),
					},
				]),
		{
			label: v.is_active ? "Deactivate version" : "Activate version",
			onSelect: () =>
				act(
					() => changeEndpoint(endpoint.name, { version: v.version, is_active: !v.is_active }),
					`v${v.version} ${v.is_active ? "deactivated" : "activated"}`,
				),
		},
	];
	const back = async () => {
		await act(async () => {
			const answer = await rollBack(endpoint.name);
			toast(`v${answer.current_version} is current now`);
			return answer;
		}, "Rolled back");
	};
	return (
		<div class="endpoints-stack">
			<Card
				title="Versions"
				actions={
					<>
						<Button small disabled={!can("endpoint:write") || versions.filter((v) => v.published_at).length < 2} onClick={back}>
							Roll back
						</Button>
						<Button small look="primary" disabled={!can("endpoint:write") || !current} onClick={() => setEditing("new")}>
							New version
						</Button>
					</>
				}
			>
				<Table label="Versions" columns={columns(itemsOf)} rows={versions} keyOf={(v) => v.version} />
			</Card>
			{reported && <Reported changes={reported} />}
			<Compare versions={versions} />
			{editing && current && (
				<Editor
					name={endpoint.name}
					of={editing === "new" ? current : editing}
					draft={editing !== "new"}
					onClose={() => setEditing(null)}
					onSaved={(changes) => {
						setReported(changes);
						reload();
					}}
				/>
			)}
			{seen && (
				<Dialog title={`Query of v${seen.version}`} wide onClose={() => setSeen(null)}>
					<pre class="endpoints-raw" tabIndex={0} role="group" aria-label="Query">
						{textOf(seen.query)}
					</pre>
				</Dialog>
			)}
		</div>
	);
}

function columns(itemsOf: (v: Version) => MenuItem[]): Column<Version>[] {
	return [
		{ name: "version", title: "Version", cell: (v) => `v${v.version}` },
		{
			name: "state",
			title: "State",
			cell: (v) => (
				<span class="endpoints-badges">
					{v.is_current && <Badge tone="good">Current</Badge>}
					{v.is_draft && <Badge tone="accent">Draft</Badge>}
					{!v.is_active && <Badge tone="warn">Inactive</Badge>}
					{v.deprecated_at && <Badge tone="warn">Deprecated</Badge>}
					{v.is_materialized && <Badge tone="accent">Materialized</Badge>}
				</span>
			),
		},
		{
			name: "created",
			title: "Created",
			cell: (v) => (
				<>
					<When time={v.version_created_at} />
					{authorOf(v.version_created_by) && ` by ${authorOf(v.version_created_by)}`}
				</>
			),
		},
		{
			name: "published",
			title: "Last became current",
			extra: true,
			cell: (v) => (v.published_at ? <When time={v.published_at} /> : "never"),
		},
		{
			name: "columns",
			title: "Columns",
			extra: true,
			cell: (v) => (v.columns.length > 0 ? v.columns.map((c) => c.name).join(", ") : "–"),
		},
		{
			name: "menu",
			title: <span class="visually-hidden">Actions</span>,
			cell: (v) => (
				<Menu label={`Actions for v${v.version}`} icon items={itemsOf(v)}>
					⋯
				</Menu>
			),
		},
	];
}

/** What callers will notice, as the API reported it. */
function Reported({ changes }: { changes: Changes }) {
	return (
		<Card title={`From v${changes.from} to v${changes.to}`} class="endpoints-reported">
			<ChangeList title="Breaks callers" tone="bad" changes={changes.breaking} />
			<ChangeList title="Compatible" tone="good" changes={changes.compatible} />
			{changes.breaking.length + changes.compatible.length === 0 && <p>Callers notice no change of columns or variables.</p>}
		</Card>
	);
}

function ChangeList({ title, tone, changes }: { title: string; tone: "bad" | "good"; changes: Change[] }) {
	if (changes.length === 0) return null;
	return (
		<>
			<h3>
				<Badge tone={tone}>{title}</Badge>
			</h3>
			<ul class="endpoints-points">
				{changes.map((change) => (
					<li key={change.code + change.name}>{change.detail}</li>
				))}
			</ul>
		</>
	);
}

/** Compares the queries of two versions. */
function Compare({ versions }: { versions: Version[] }) {
	const [from, setFrom] = useState("");
	const [to, setTo] = useState("");
	const newest = versions[0];
	if (!newest || versions.length < 2) return null;
	const of = (number: string, fallback: Version | undefined) => versions.find((v) => String(v.version) === number) ?? fallback;
	const before = of(from, versions[1]);
	const after = of(to, newest);
	if (!before || !after) return null;
	const choices = versionChoices(versions);
	return (
		<Card title="Compare">
			<div class="endpoints-filters">
				<Field label="From" inline>
					{(id) => <Select id={id} value={String(before.version)} choices={choices} onValue={setFrom} />}
				</Field>
				<Field label="To" inline>
					{(id) => <Select id={id} value={String(after.version)} choices={choices} onValue={setTo} />}
				</Field>
			</div>
			<Diff lines={diffLines(textOf(before.query), textOf(after.query))} />
			<ColumnChanges before={before} after={after} />
		</Card>
	);
}

const marks = { same: " ", added: "+", removed: "-" } as const;
const spoken = { same: "", added: "Added: ", removed: "Removed: " } as const;

function Diff({ lines }: { lines: DiffLine[] }) {
	if (lines.every((line) => line.kind === "same")) return <p class="hint">The queries are the same.</p>;
	return (
		<pre class="endpoints-diff" tabIndex={0} role="group" aria-label="What changed in the query">
			{lines.map((line, i) => (
				<span key={i} class={`endpoints-diff-${line.kind}`}>
					<span aria-hidden="true">{marks[line.kind]} </span>
					{line.kind !== "same" && <span class="visually-hidden">{spoken[line.kind]}</span>}
					{line.text}
					{"\n"}
				</span>
			))}
		</pre>
	);
}

function ColumnChanges({ before, after }: { before: Version; after: Version }) {
	const list = (v: Version) => v.columns.map((c) => `${c.name} ${c.clickhouse_type ?? c.type}`);
	const [a, b] = [list(before), list(after)];
	const gone = a.filter((column) => !b.includes(column));
	const come = b.filter((column) => !a.includes(column));
	if (gone.length + come.length === 0) return null;
	return (
		<p class="hint">
			{gone.length > 0 && `Columns only in v${before.version}: ${gone.join(", ")}. `}
			{come.length > 0 && `Columns only in v${after.version}: ${come.join(", ")}.`}
		</p>
	);
}

/** The dialog that writes the next version, or a draft. */
function Editor({
	name,
	of,
	draft,
	onClose,
	onSaved,
}: {
	name: string;
	of: Version;
	/** Whether a draft is being edited. */
	draft: boolean;
	onClose: () => void;
	onSaved: (changes: Changes | null) => void;
}) {
	const [text, setText] = useState(textOf(of.query));
	const [asDraft, setAsDraft] = useState(true);
	const [careful, setCareful] = useState(true);
	const hogql = sourceOf(of.query).kind === "HogQLQuery";
	const missing = useMissingVariables(hogql ? text : "");
	const save = async () => {
		const query = queryOf(text, of.query, await missing.define());
		const { changes } = await changeEndpoint(name, { query, ...(asDraft ? { draft: true } : { refuse_breaking: careful }) });
		onSaved(changes ?? null);
	};
	return (
		<FormDialog
			title={draft ? `Edit draft v${of.version}` : "New version"}
			action={asDraft ? "Save draft" : "Publish"}
			wide
			onSubmit={save}
			onClose={onClose}
		>
			{hogql ? <SQLField value={text} onValue={setText} /> : <JSONField value={text} onValue={setText} />}
			<MissingVariables missing={missing} />
			<Checkbox
				label="Save as a draft: only you and other authors can run it, until it is promoted"
				checked={asDraft}
				onValue={setAsDraft}
			/>
			{!asDraft && <Checkbox label="Refuse changes that break callers" checked={careful} onValue={setCareful} />}
			{draft && <p class="hint">A draft with another query is a new version. The old draft stays.</p>}
		</FormDialog>
	);
}

function JSONField({ value, onValue }: { value: string; onValue: (text: string) => void }) {
	return (
		<Field label="Query" hint="The query node of the insight, as JSON.">
			{(id) => (
				<textarea
					id={id}
					class="endpoints-code"
					rows={16}
					spellcheck={false}
					required
					value={value}
					onInput={(event) => onValue(event.currentTarget.value)}
				/>
			)}
		</Field>
	);
}
