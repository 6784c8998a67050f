import { Button, Field, Snippet, TextInput } from "../../ui/basics";
import { Combobox } from "../../ui/combobox";
import { Dialog } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { get } from "../../api/client";
import { changeKey, revokeKey, rollKey } from "./api";

/** Shows a key that was just made, for the only time: only a button closes it. */
export function Secret({ label, value, onClose }: { label: string; value: string; onClose: () => void }) {
	return (
		<Dialog title={label} onClose={onClose} firm={() => {}}>
			<div class="form keys-secret">
				<p>Copy the key now. It is not shown again.</p>
				<Snippet label="Key" text={value} />
				<footer class="dialog-foot">
					<Button look="primary" onClick={onClose}>
						Done
					</Button>
				</footer>
			</div>
		</Dialog>
	);
}

/** What a page of keys is doing with one of them. */
export type Doing<T> = { what: "roll" | "revoke" | "change"; key: T } | null;

/** Asks whether to roll or revoke a key, and does it. */
export function EndDialog<T extends { id: string; label: string; value: string | null }>({
	doing,
	path,
	own,
	onClose,
	onRolled,
	onRevoked,
}: {
	doing: { what: "roll" | "revoke"; key: T };
	path: string;
	/** Whether it is the key of this session. */
	own?: boolean;
	onClose: () => void;
	onRolled: (key: T) => void;
	onRevoked: (key: T) => void;
}) {
	const { what, key } = doing;
	const roll = what === "roll";
	const submit = async () => {
		if (roll) onRolled(await rollKey<T>(path, key.id));
		else {
			await revokeKey(path, key.id);
			onRevoked(key);
		}
	};
	return (
		<FormDialog
			title={roll ? `Roll “${key.label}”?` : `Revoke “${key.label}”?`}
			action={roll ? "Roll" : "Revoke"}
			danger
			onSubmit={submit}
			onClose={onClose}
		>
			<p>{roll ? "You get a new key. The old one stops working at once." : "It stops working at once, and cannot be restored."}</p>
			{own && (
				<p class="notice">
					{roll
						? "This is the key that you are signed in with: you stay signed in with the new one."
						: "This is the key that you are signed in with: you will be signed out."}
				</p>
			)}
		</FormDialog>
	);
}

/** Changes the label of a key. */
export function RenameDialog({
	path,
	id,
	label,
	setLabel,
	onClose,
	onChanged,
}: {
	path: string;
	id: string;
	label: string;
	setLabel: (label: string) => void;
	onClose: () => void;
	onChanged: () => void;
}) {
	const submit = async () => {
		await changeKey(path, id, { label: label.trim() });
		onChanged();
	};
	return (
		<FormDialog title="Rename key" action="Save" onSubmit={submit} onClose={onClose}>
			<Field label="Label">{(field) => <TextInput id={field} value={label} onValue={setLabel} required autofocus />}</Field>
		</FormDialog>
	);
}

/** What a key is bound to, while it is being made. */
export interface Binding {
	fixed: string;
	endpoints: string[];
}

export const unbound: Binding = { fixed: "", endpoints: [] };

/** Asks what a key is bound to: endpoints, and values of variables. */
export function BindingFields({ binding, onBinding }: { binding: Binding; onBinding: (binding: Binding) => void }) {
	return (
		<>
			<Field label="Endpoints" hint="Those that it can run. None chosen: all.">
				{(id) => (
					<>
						<Combobox
							id={id}
							label="Endpoints"
							value=""
							many
							placeholder="Add an endpoint"
							suggest={findEndpoints}
							onValue={(name) => onBinding({ ...binding, endpoints: [...new Set([...binding.endpoints, name])] })}
						/>
						{binding.endpoints.length > 0 && (
							<ul class="keys-chosen">
								{binding.endpoints.map((name) => (
									<li key={name}>
										<Button
											small
											aria-label={`Remove ${name}`}
											onClick={() => onBinding({ ...binding, endpoints: binding.endpoints.filter((e) => e !== name) })}
										>
											{name} ×
										</Button>
									</li>
								))}
							</ul>
						)}
					</>
				)}
			</Field>
			<Field
				label="Fixed variables"
				hint="One on each line, such as customer_id = acme. Its holder cannot change them: a filter that every run has. A text that looks like a number goes in quotes."
			>
				{(id) => (
					<textarea
						id={id}
						rows={2}
						spellcheck={false}
						value={binding.fixed}
						onInput={(event) => onBinding({ ...binding, fixed: event.currentTarget.value })}
					/>
				)}
			</Field>
		</>
	);
}

async function findEndpoints(text: string, signal: AbortSignal) {
	const { results } = await get<{ results: { name: string; description: string }[] }>("endpoints/", { search: text, limit: 20 }, signal);
	return results.map((e) => ({ value: e.name, detail: e.description }));
}
