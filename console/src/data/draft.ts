import { useState } from "preact/hooks";
import { stringify } from "../api/json";

/**
 * The fields of a form that differ from what it began with. Only they are sent, so that what others changed since the form was loaded stays.
 */
export function changedFields<T extends object>(now: T, began: T): Partial<T> {
	const changed = Object.entries(now).filter(([name, value]) => stringify(value) !== stringify(began[name as keyof T]));
	return Object.fromEntries(changed) as Partial<T>;
}

/** A draft once it is saved: what the server made of it, but for the fields that were changed after they were sent. */
export function afterSave<T extends object>(now: T, sent: T, saved: T): T {
	return { ...saved, ...changedFields(now, sent) };
}

/** What was typed into the forms of records, each with a number. It stays when the records are loaded again. */
export interface Edits<R, T extends object> {
	/** What is in the form of a record: what was typed, and the record's other fields. */
	of: (id: number, record: R) => T;
	edit: (id: number, record: R, form: T) => void;
	/** Says that a form was saved, which leaves what was typed since it was sent. */
	saved: (id: number, sent: T) => void;
}

export function useEdits<R, T extends object>(formOf: (record: R) => T): Edits<R, T> {
	const [edited, setEdited] = useState<Record<number, { now: T; before: T }>>({});
	return {
		of: (id, record) => {
			const form = edited[id];
			return form ? afterSave(form.now, form.before, formOf(record)) : formOf(record);
		},
		edit: (id, record, form) => setEdited((all) => ({ ...all, [id]: { now: form, before: formOf(record) } })),
		saved: (id, sent) =>
			setEdited((all) => {
				const form = all[id];
				return form ? { ...all, [id]: { now: form.now, before: sent } } : all;
			}),
	};
}
