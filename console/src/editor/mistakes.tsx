import { signal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useMemo } from "preact/hooks";
import { ApiError, messageOf } from "../api/client";

/**
 * What the server said is wrong with a query, and the fields that can show it. A mistake is shown once: at the field it names, else
 * at the nearest one around it, else above all of them.
 */
export class Mistakes {
	private readonly fields = signal<readonly string[]>([]);
	private readonly error = signal<unknown>(null);

	/** The error to show; null for none. */
	set(error: unknown): void {
		this.error.value = error ?? null;
	}

	/** A field that can show mistakes while it is there. Returns what takes it out. */
	add(field: string): () => void {
		this.fields.value = [...this.fields.value, field];
		return () => {
			const at = this.fields.value.indexOf(field);
			this.fields.value = this.fields.value.filter((_, i) => i !== at);
		};
	}

	/** The message for a field; empty for none. The empty field is that of the whole query. */
	at(field: string): string {
		const error = this.error.value;
		if (!error) return "";
		const attr = error instanceof ApiError ? fieldOf(error.attr) : "";
		return nearest(attr, this.fields.value) === field ? messageOf(error) : "";
	}
}

/** The field of the editor that an error of the API names. Nodes around the insight are left out. */
export function fieldOf(attr: string | null): string {
	return (attr ?? "").replace(/^(query\.)?(source\.)*/, "");
}

/** The longest of some fields that is an attribute or lies around it; empty for none. */
export function nearest(attr: string, fields: readonly string[]): string {
	let found = "";
	for (const field of fields) {
		if ((attr === field || attr.startsWith(`${field}.`)) && field.length > found.length) found = field;
	}
	return found;
}

const Context = createContext<Mistakes | null>(null);

/** Shows the mistakes of an error at the fields in it. */
export function MistakesOf({ error, children }: { error: unknown; children: ComponentChildren }) {
	const mistakes = useMemo(() => new Mistakes(), []);
	useEffect(() => mistakes.set(error), [error]);
	return <Context.Provider value={mistakes}>{children}</Context.Provider>;
}

/** The message for a field; empty for none. */
export function useMistake(field: string | undefined): string {
	const mistakes = useContext(Context);
	useEffect(() => (mistakes && field ? mistakes.add(field) : undefined), [mistakes, field]);
	return mistakes && field !== undefined ? mistakes.at(field) : "";
}

/** What is wrong with a field, if anything. */
export function MistakeAt({ field }: { field: string | undefined }) {
	const message = useMistake(field);
	if (!message) return null;
	return (
		<p class="mistake" role="alert">
			{message}
		</p>
	);
}
