import { useState } from "preact/hooks";
import { useResource } from "../../api/use";
import { can } from "../../session";
import { Button, Card, Empty, Field, Loaded, TextInput } from "../../ui/basics";
import { toast } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { ago } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { type Column, Pager, Table } from "../../ui/table";
import { boundTo, makeKey, readFixed, readKeys, secretKeys, type SecretKey } from "./api";
import { type Binding, BindingFields, type Doing, EndDialog, RenameDialog, Secret, unbound } from "./shared";

const pageSize = 50;

/** The keys of backends, which can only run endpoints. */
export function SecretTab() {
	const [offset, setOffset] = useState(0);
	const [making, setMaking] = useState(false);
	const [doing, setDoing] = useState<Doing<SecretKey>>(null);
	const [shown, setShown] = useState<SecretKey | null>(null);
	const [label, setLabel] = useState("");
	const keys = useResource((signal) => readKeys<SecretKey>(secretKeys, offset, pageSize, signal), [offset]);
	const made = (key: SecretKey) => {
		setShown(key);
		keys.reload();
	};
	const begin = (next: Doing<SecretKey>) => {
		setLabel(next?.key.label ?? "");
		setDoing(next);
	};
	return (
		<Card
			title="Secret keys"
			actions={
				<Button look="primary" disabled={!can("project:write") || !can("endpoint:read")} onClick={() => setMaking(true)}>
					New secret key
				</Button>
			}
		>
			<p class="hint keys-about">
				For backends. A secret key runs endpoints and nothing else, and can be exchanged for tokens that pages in browsers hold. Bind it to
				one customer with fixed variables. What it is bound to cannot be changed later. A project has at most 50.
			</p>
			<Loaded of={keys}>
				{({ count, results }) =>
					results.length === 0 && offset === 0 ? (
						<Empty title="No secret keys" />
					) : (
						<>
							<Table label="Secret keys" columns={columns(begin)} rows={results} keyOf={(key) => key.id} />
							<Pager offset={offset} limit={pageSize} count={count} more={offset + results.length < count} onOffset={setOffset} />
						</>
					)
				}
			</Loaded>
			{making && <Create onClose={() => setMaking(false)} onMade={made} />}
			{doing?.what === "change" && (
				<RenameDialog
					path={secretKeys}
					id={doing.key.id}
					label={label}
					setLabel={setLabel}
					onClose={() => setDoing(null)}
					onChanged={keys.reload}
				/>
			)}
			{doing && doing.what !== "change" && (
				<EndDialog
					doing={{ what: doing.what, key: doing.key }}
					path={secretKeys}
					onClose={() => setDoing(null)}
					onRolled={made}
					onRevoked={(key) => {
						toast(`${key.label} revoked`);
						keys.reload();
					}}
				/>
			)}
			{shown?.value && <Secret label={shown.label} value={shown.value} onClose={() => setShown(null)} />}
		</Card>
	);
}

function columns(begin: (doing: Doing<SecretKey>) => void): Column<SecretKey>[] {
	return [
		{ name: "label", title: "Label", cell: (key) => key.label },
		{ name: "mask", title: "Key", cell: (key) => <code>{key.mask_value}</code> },
		{ name: "bound", title: "Bound to", extra: true, cell: (key) => boundTo(key) || "nothing: every endpoint" },
		{ name: "created", title: "Created", extra: true, cell: (key) => ago(key.created_at) },
		{ name: "used", title: "Last used", cell: (key) => ago(key.last_used_at) },
		{
			name: "menu",
			title: <span class="visually-hidden">Actions</span>,
			cell: (key) =>
				can("project:write") && (
					<Menu
						label={`Actions for ${key.label}`}
						icon
						items={[
							{ label: "Rename…", onSelect: () => begin({ what: "change", key }) },
							{ label: "Roll…", onSelect: () => begin({ what: "roll", key }) },
							{ label: "Revoke…", danger: true, onSelect: () => begin({ what: "revoke", key }) },
						]}
					>
						⋯
					</Menu>
				),
		},
	];
}

function Create({ onClose, onMade }: { onClose: () => void; onMade: (key: SecretKey) => void }) {
	const [label, setLabel] = useState("");
	const [binding, setBinding] = useState<Binding>(unbound);
	const submit = async () => {
		const fixed = readFixed(binding.fixed);
		onMade(
			await makeKey<SecretKey>(secretKeys, {
				label: label.trim(),
				scopes: ["endpoint:read"],
				...(Object.keys(fixed).length > 0 && { fixed }),
				...(binding.endpoints.length > 0 && { endpoints: binding.endpoints }),
			}),
		);
	};
	return (
		<FormDialog title="New secret key" action="Create key" onSubmit={submit} onClose={onClose}>
			<Field label="Label" hint="Who holds it, such as the name of a backend or a customer.">
				{(id) => <TextInput id={id} value={label} onValue={setLabel} required autofocus />}
			</Field>
			<BindingFields binding={binding} onBinding={setBinding} />
		</FormDialog>
	);
}
