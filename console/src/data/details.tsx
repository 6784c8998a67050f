import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Field, TextArea, TextInput } from "../ui/basics";
import { FormDialog } from "../ui/form-dialog";
import { changedFields } from "./draft";
import { readTags } from "./tags";

/** What people say of an insight or a dashboard. */
export interface Details {
	name: string;
	description: string;
	tags: string[];
}

/** A form for the name, the description and the tags of something. */
export function DetailsDialog({
	title = "Name, description, tags",
	action = "Save",
	of,
	children,
	onSave,
	onClose,
}: {
	title?: string;
	action?: string;
	/** What the form begins with. */
	of?: { name?: string | null; description?: string | null; tags?: readonly string[] };
	children?: ComponentChildren;
	/** Saves it; `changes` are the fields that differ from what the form began with. The dialog closes unless it throws. */
	onSave: (details: Details, changes: Partial<Details>) => Promise<void>;
	onClose: () => void;
}) {
	const [name, setName] = useState(of?.name ?? "");
	const [description, setDescription] = useState(of?.description ?? "");
	const [tags, setTags] = useState((of?.tags ?? []).join(", "));
	const details = { name: name.trim(), description, tags: readTags(tags) };
	const [began] = useState(details);
	const save = () => onSave(details, changedFields(details, began));
	return (
		<FormDialog title={title} action={action} onSubmit={save} onClose={onClose}>
			<Field label="Name">{(id) => <TextInput id={id} value={name} onValue={setName} required maxLength={400} autofocus />}</Field>
			<Field label="Description">{(id) => <TextArea id={id} value={description} onValue={setDescription} />}</Field>
			<Field label="Tags" hint="Separated by commas.">
				{(id) => <TextInput id={id} value={tags} onValue={setTags} />}
			</Field>
			{children}
		</FormDialog>
	);
}
