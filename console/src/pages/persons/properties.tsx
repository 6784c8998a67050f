import { useState } from "preact/hooks";
import { post } from "../../api/client";
import type { Person } from "../../data/people";
import { PropertyTable } from "../../data/properties";
import { can } from "../../session";
import { Button, Field, Select, TextInput } from "../../ui/basics";
import { toast } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { Menu } from "../../ui/menu";
import { type Kind, kinds, valueOf, writtenAs } from "./values";

/** A property that is being changed. Without a name it is a new one. */
interface Doing {
	what: "set" | "delete";
	name: string;
}

/** The properties of a person, which can be set and deleted. */
export function PersonProperties({ person, onChanged }: { person: Person; onChanged: () => void }) {
	const [doing, setDoing] = useState<Doing | null>(null);
	const close = () => setDoing(null);
	const label = "Properties of the person";
	if (!can("person:write")) return <PropertyTable properties={person.properties} label={label} />;
	return (
		<div class="stack">
			<div>
				<Button onClick={() => setDoing({ what: "set", name: "" })}>Set a property</Button>
			</div>
			<PropertyTable
				properties={person.properties}
				label={label}
				more={[
					{
						name: "menu",
						title: <span class="visually-hidden">Actions</span>,
						cell: ([name]) => (
							<Menu
								label={`Actions for ${name}`}
								icon
								items={[
									{ label: "Change…", onSelect: () => setDoing({ what: "set", name }) },
									{ label: "Delete…", danger: true, onSelect: () => setDoing({ what: "delete", name }) },
								]}
							>
								⋯
							</Menu>
						),
					},
				]}
			/>
			{doing?.what === "set" && <SetProperty person={person} name={doing.name} onClose={close} onChanged={onChanged} />}
			{doing?.what === "delete" && <DeleteProperty person={person} name={doing.name} onClose={close} onChanged={onChanged} />}
		</div>
	);
}

interface DialogProps {
	person: Person;
	name: string;
	onClose: () => void;
	onChanged: () => void;
}

function SetProperty({ person, name: given, onClose, onChanged }: DialogProps) {
	const before = writtenAs(given ? person.properties[given] : "");
	const [name, setName] = useState(given);
	const [kind, setKind] = useState<Kind>(before.kind);
	const [text, setText] = useState(before.text);
	const submit = async () => {
		await post(`persons/${person.uuid}/update_property/`, { key: name, value: valueOf(kind, text) });
		toast(`${name} was set`);
		onChanged();
	};
	return (
		<FormDialog title={given ? `Change ${given}` : "Set a property"} action="Save" onSubmit={submit} onClose={onClose}>
			{!given && (
				<Field label="Property">{(id) => <TextInput id={id} value={name} onValue={setName} required autofocus maxLength={400} />}</Field>
			)}
			<Field label="Type">{(id) => <Select id={id} value={kind} choices={kinds} onValue={setKind} />}</Field>
			<Field label="Value" hint="Events that came in before keep the value that they had.">
				{(id) => <ValueInput id={id} kind={kind} text={text} onText={setText} />}
			</Field>
		</FormDialog>
	);
}

const truths = [
	{ value: "true", label: "True" },
	{ value: "false", label: "False" },
];

function ValueInput({ id, kind, text, onText }: { id: string; kind: Kind; text: string; onText: (text: string) => void }) {
	if (kind === "boolean") return <Select id={id} value={text === "true" ? "true" : "false"} choices={truths} onValue={onText} />;
	if (kind === "json")
		return <textarea id={id} rows={6} spellcheck={false} value={text} onInput={(event) => onText(event.currentTarget.value)} />;
	return <TextInput id={id} value={text} onValue={onText} inputMode={kind === "number" ? "decimal" : "text"} />;
}

function DeleteProperty({ person, name, onClose, onChanged }: DialogProps) {
	const submit = async () => {
		await post(`persons/${person.uuid}/delete_property/`, { $unset: name });
		toast(`${name} was deleted`);
		onChanged();
	};
	return (
		<FormDialog title={`Delete ${name}?`} action="Delete property" danger onSubmit={submit} onClose={onClose}>
			<p>The person no longer has this property. Events that came in before keep the value that they had.</p>
		</FormDialog>
	);
}
