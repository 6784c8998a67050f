import { useState } from "preact/hooks";
import { useResource } from "../../api/use";
import { changedFields } from "../../data/draft";
import { can, close, open, session } from "../../session";
import { Badge, Button, Card, Empty, Field, Loaded, Select, TextInput } from "../../ui/basics";
import { toast } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { ago } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { type Column, Pager, Table } from "../../ui/table";
import { boundTo, changeKey, makeKey, personalKeys, type PersonalKey, readFixed, readKeys } from "./api";
import { ScopePicker } from "./picker";
import { explainScope } from "./scopes";
import { type Binding, BindingFields, type Doing, EndDialog, Secret, unbound } from "./shared";

const pageSize = 50;

/** The keys of people and their tools. */
export function PersonalTab() {
	const [offset, setOffset] = useState(0);
	const [making, setMaking] = useState(false);
	const [doing, setDoing] = useState<Doing<PersonalKey>>(null);
	const [shown, setShown] = useState<PersonalKey | null>(null);
	const keys = useResource((signal) => readKeys<PersonalKey>(personalKeys, offset, pageSize, signal), [offset]);
	const made = (key: PersonalKey) => {
		setShown(key);
		keys.reload();
	};
	const rolled = (key: PersonalKey) => {
		const now = session.value;
		if (doing?.key.is_current && now && key.value) open({ ...now, key: key.value });
		made(key);
	};
	const revoked = (key: PersonalKey) => {
		if (key.is_current) {
			close("You revoked the key that you were signed in with.");
			return;
		}
		toast(`${key.label} revoked`);
		keys.reload();
	};
	return (
		<Card
			title="Personal keys"
			actions={
				<Button look="primary" disabled={!can("project:write")} onClick={() => setMaking(true)}>
					New personal key
				</Button>
			}
		>
			<p class="hint keys-about">
				For people and the tools that they use. A key gives out only what it has itself, and a key that was created with another one ends
				with it.
			</p>
			<Loaded of={keys}>
				{({ count, results }) =>
					results.length === 0 && offset === 0 ? (
						<Empty title="No personal keys" />
					) : (
						<>
							<Table label="Personal keys" columns={columns(setDoing)} rows={results} keyOf={(key) => key.id} />
							<Pager offset={offset} limit={pageSize} count={count} more={offset + results.length < count} onOffset={setOffset} />
						</>
					)
				}
			</Loaded>
			{making && <Create onClose={() => setMaking(false)} onMade={made} />}
			{doing?.what === "change" && <Change of={doing.key} onClose={() => setDoing(null)} onChanged={keys.reload} />}
			{doing && doing.what !== "change" && (
				<EndDialog
					doing={{ what: doing.what, key: doing.key }}
					path={personalKeys}
					own={doing.key.is_current}
					onClose={() => setDoing(null)}
					onRolled={rolled}
					onRevoked={revoked}
				/>
			)}
			{shown?.value && <Secret label={shown.label} value={shown.value} onClose={() => setShown(null)} />}
		</Card>
	);
}

function columns(begin: (doing: Doing<PersonalKey>) => void): Column<PersonalKey>[] {
	return [
		{
			name: "label",
			title: "Label",
			cell: (key) => (
				<>
					{key.label}{" "}
					<span class="keys-badges">
						{key.is_current && <Badge tone="accent">You</Badge>}
						{key.is_session && <Badge>Session</Badge>}
						{key.is_expired && <Badge tone="warn">Expired</Badge>}
					</span>
				</>
			),
		},
		{ name: "mask", title: "Key", cell: (key) => <code>{key.mask_value}</code> },
		{ name: "scopes", title: "May", cell: (key) => <Scopes scopes={key.scopes} bound={boundTo(key)} /> },
		{ name: "expires", title: "Expires", extra: true, cell: (key) => (key.expires_at ? ago(key.expires_at) : "never") },
		{ name: "created", title: "Created", extra: true, cell: (key) => ago(key.created_at) },
		{ name: "used", title: "Last used", extra: true, cell: (key) => ago(key.last_used_at) },
		{ name: "menu", title: <span class="visually-hidden">Actions</span>, cell: (key) => <KeyMenu of={key} begin={begin} /> },
	];
}

function KeyMenu({ of, begin }: { of: PersonalKey; begin: (doing: Doing<PersonalKey>) => void }) {
	const may = (what: PersonalKey["can"][number]) => of.can.includes(what);
	return (
		<Menu
			label={`Actions for ${of.label}`}
			icon
			items={[
				{ label: "Change…", disabled: !may("change"), onSelect: () => begin({ what: "change", key: of }) },
				{ label: "Roll…", disabled: !may("roll"), onSelect: () => begin({ what: "roll", key: of }) },
				{ label: "Revoke…", danger: true, disabled: !may("revoke"), onSelect: () => begin({ what: "revoke", key: of }) },
			]}
		>
			⋯
		</Menu>
	);
}

/** The scopes of a key; what they mean is behind a click. */
function Scopes({ scopes, bound }: { scopes: string[]; bound: string }) {
	if (scopes.length === 1 && scopes[0] === "*") return <>{bound ? `Run endpoints: ${bound}` : "Everything"}</>;
	return (
		<details class="keys-scopes">
			<summary>{scopes.length === 1 ? scopes[0] : `${scopes.length} scopes`}</summary>
			<ul>
				{scopes.map((scope) => (
					<li key={scope}>
						<code>{scope}</code> {explainScope(scope)}
					</li>
				))}
			</ul>
			{bound && <p class="hint">Bound: {bound}</p>}
		</details>
	);
}

const expiries = [
	{ value: "", label: "Never" },
	{ value: "1", label: "In a day" },
	{ value: "7", label: "In a week" },
	{ value: "30", label: "In 30 days" },
	{ value: "90", label: "In 90 days" },
	{ value: "365", label: "In a year" },
] as const;

function Create({ onClose, onMade }: { onClose: () => void; onMade: (key: PersonalKey) => void }) {
	const [label, setLabel] = useState("");
	const [scopes, setScopes] = useState<string[]>([]);
	const [days, setDays] = useState<(typeof expiries)[number]["value"]>("90");
	const [binding, setBinding] = useState<Binding>(unbound);
	const submit = async () => {
		if (scopes.length === 0) throw new Error("Choose what the key may do.");
		const fixed = readFixed(binding.fixed);
		onMade(
			await makeKey<PersonalKey>(personalKeys, {
				label: label.trim(),
				scopes,
				...(days && { expires_in: Number(days) * 86400 }),
				...(Object.keys(fixed).length > 0 && { fixed }),
				...(binding.endpoints.length > 0 && { endpoints: binding.endpoints }),
			}),
		);
	};
	return (
		<FormDialog title="New personal key" action="Create key" wide onSubmit={submit} onClose={onClose}>
			<Field label="Label" hint="Who or what uses it.">
				{(id) => <TextInput id={id} value={label} onValue={setLabel} required autofocus />}
			</Field>
			<ScopePicker scopes={scopes} onScopes={setScopes} />
			<Field label="Expires">{(id) => <Select id={id} value={days} choices={expiries} onValue={setDays} />}</Field>
			<details>
				<summary>Bind it to endpoints or to one customer</summary>
				<div class="form keys-binding">
					<p class="hint">A bound key can only run published versions of endpoints, whatever its scopes.</p>
					<BindingFields binding={binding} onBinding={setBinding} />
				</div>
			</details>
		</FormDialog>
	);
}

function Change({ of, onClose, onChanged }: { of: PersonalKey; onClose: () => void; onChanged: () => void }) {
	const [label, setLabel] = useState(of.label);
	const [scopes, setScopes] = useState(of.scopes);
	const submit = async () => {
		const body = { label: label.trim(), scopes: scopes.toSorted() };
		const began = { label: of.label, scopes: of.scopes.toSorted() };
		const key = await changeKey<PersonalKey>(personalKeys, of.id, changedFields(body, began));
		const now = session.value;
		if (of.is_current && now) open({ ...now, label: key.label, scopes: key.scopes });
		onChanged();
	};
	return (
		<FormDialog title="Change key" action="Save" wide onSubmit={submit} onClose={onClose}>
			<Field label="Label">{(id) => <TextInput id={id} value={label} onValue={setLabel} required />}</Field>
			<ScopePicker scopes={scopes} onScopes={setScopes} />
		</FormDialog>
	);
}
