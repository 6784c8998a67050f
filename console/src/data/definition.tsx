import { useState } from "preact/hooks";
import { patch } from "../api/client";
import { Badge, Checkbox, Field, Select, TextArea, TextInput } from "../ui/basics";
import { FormDialog } from "../ui/form-dialog";
import { changedFields } from "./draft";
import type { Definition } from "./definitions";
import { typeName } from "./definitions";
import { readTags } from "./tags";

export function Tags({ tags }: { tags: readonly string[] }) {
	if (tags.length === 0) return null;
	return (
		<span class="data-tags">
			{tags.map((tag) => (
				<Badge key={tag}>{tag}</Badge>
			))}
		</span>
	);
}

/** Whether a definition is verified or hidden. */
export function Marks({ definition }: { definition: Definition }) {
	return (
		<>
			{definition.verified && <Badge tone="good">Verified</Badge>} {definition.hidden && <Badge>Hidden</Badge>}
		</>
	);
}

const types = [null, "String", "Numeric", "Boolean", "DateTime", "Duration"].map((type) => ({ value: type ?? "", label: typeName(type) }));

/** Changes what people say of an event or a property. `path` is the list's, such as "event_definitions/". */
export function EditDefinition<T extends Definition & { property_type?: string | null }>({
	path,
	definition,
	onChanged,
	onClose,
}: {
	path: string;
	definition: T;
	onChanged: (definition: T) => void;
	onClose: () => void;
}) {
	const [description, setDescription] = useState(definition.description ?? "");
	const [tags, setTags] = useState(definition.tags.join(", "));
	const [verified, setVerified] = useState(definition.verified);
	const [hidden, setHidden] = useState(definition.hidden);
	const [type, setType] = useState(definition.property_type ?? "");
	const typed = definition.property_type !== undefined;
	const body = { description, tags: readTags(tags), verified, hidden, ...(typed && { property_type: type || null }) };
	const [began] = useState(body);
	const save = async () => {
		onChanged(await patch<T>(`${path}${encodeURIComponent(definition.id)}/`, changedFields(body, began)));
	};
	return (
		<FormDialog title={`Edit ${definition.name}`} action="Save" onSubmit={save} onClose={onClose}>
			<Field label="Description">{(id) => <TextArea id={id} value={description} onValue={setDescription} />}</Field>
			<Field label="Tags" hint="Separated by commas.">
				{(id) => <TextInput id={id} value={tags} onValue={setTags} />}
			</Field>
			{typed && (
				<Field label="Type" hint="Filters compare by it.">
					{(id) => <Select id={id} value={type} choices={types} onValue={setType} />}
				</Field>
			)}
			<Checkbox label="Verified" checked={verified} onValue={setVerified} />
			<Checkbox label="Hidden" checked={hidden} onValue={setHidden} />
		</FormDialog>
	);
}
