import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { messageOf } from "../api/client";
import { useResource, useSettled } from "../api/use";
import { classes } from "./basics";

/** A suggestion of a combobox. */
export interface Suggestion {
	value: string;
	/** What is shown; the value if nothing. */
	label?: string;
	/** Shown beside it in grey, such as the type of a property. */
	detail?: string;
	/** Whether it stands for the typed text itself, which is not known to exist. */
	unseen?: boolean;
}

/** Suggestions that came, and why others did not. */
export interface Incomplete {
	list: Suggestion[];
	error: unknown;
}

type ComboboxProps = {
	label: string;
	value: string;
	/** What is shown for the value while it is not being edited. */
	shown?: string;
	placeholder?: string;
	/** Suggestions for what was typed. It is asked again when the text has settled. */
	suggest: (text: string, signal: AbortSignal) => Promise<Suggestion[] | Incomplete>;
	onValue: (value: string, suggestion?: Suggestion) => void;
	/** Whether a text that is no suggestion can be chosen. */
	free?: boolean;
	/** Whether leaving the field chooses what was typed; for free fields. */
	keep?: boolean;
	/** Empties itself after each choice, to choose several. */
	many?: boolean;
	id?: string;
	disabled?: boolean;
	/** Has the focus when the dialog around it opens. */
	autofocus?: boolean;
};

/** A text field with suggestions from the server. Arrow keys and Enter choose, Escape gives up. */
export function Combobox({ label, value, shown, placeholder, suggest, onValue, free, keep, many, id, disabled, autofocus }: ComboboxProps) {
	const [text, setText] = useState<string | null>(null); // null while it is not being edited
	const [at, setAt] = useState(0);
	const settled = useSettled(text ?? "", 150);
	const editing = text !== null;
	const found = useResource(
		async (signal) => {
			try {
				const got = editing ? await suggest(settled, signal) : [];
				return { of: settled, ...(Array.isArray(got) ? { list: got, error: undefined } : got) };
			} catch (error) {
				return { of: settled, list: [], error };
			}
		},
		[settled, editing],
	);
	// Enter is kept until there are suggestions for all that was typed.
	const [entered, setEntered] = useState(false);
	const current = !found.loading && found.data?.of === text;
	const list = useId();
	const listbox = useRef<HTMLUListElement>(null);
	const wrong = editing && current ? found.data?.error : undefined;
	const options = editing ? offered(found.data?.list ?? [], text, free) : [];
	const note = wrong !== undefined ? messageOf(wrong) : options.length > 0 ? "" : current ? "Nothing found" : "Looking…";
	useEffect(() => {
		listbox.current?.children[at]?.scrollIntoView({ block: "nearest" });
	}, [at]);
	useEffect(() => {
		if (!entered || !current) return;
		setEntered(false);
		if (options[0]) choose(options[0]);
	}, [entered, current]);
	const choose = (s: Suggestion) => {
		setText(many ? "" : null);
		setAt(0);
		onValue(s.value, s);
	};
	const keys = (event: JSX.TargetedKeyboardEvent<HTMLInputElement>) => {
		if (event.key === "Escape" && editing) {
			event.stopPropagation();
			event.preventDefault();
			setText(null);
		} else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
			event.preventDefault();
			if (!editing) setText("");
			else setAt(Math.max(0, Math.min(options.length - 1, at + (event.key === "ArrowDown" ? 1 : -1))));
		} else if (event.key === "Enter" && editing) {
			event.preventDefault();
			const chosen = options[at];
			if (chosen && (current || at > 0 || free)) choose(chosen);
			else setEntered(true);
		}
	};
	return (
		<div class="combobox">
			<input
				id={id}
				type="text"
				role="combobox"
				aria-label={label}
				aria-expanded={editing}
				aria-controls={list}
				aria-autocomplete="list"
				aria-activedescendant={editing && options[at] ? `${list}-${at}` : undefined}
				autocomplete="off"
				spellcheck={false}
				disabled={disabled}
				autofocus={autofocus}
				placeholder={editing ? shown || value || placeholder : placeholder}
				value={text ?? (many ? "" : (shown ?? value))}
				onFocus={() => setText("")}
				onClick={() => {
					// It keeps the focus after a choice.
					if (!editing) setText("");
				}}
				onBlur={() => {
					setText(null);
					setEntered(false);
					if (keep && text) onValue(text);
				}}
				onInput={(event) => {
					setText(event.currentTarget.value);
					setAt(0);
					setEntered(false);
				}}
				onKeyDown={keys}
			/>
			{editing && (
				<ul id={list} role="listbox" ref={listbox} aria-label={label} class="combobox-list" onMouseDown={(event) => event.preventDefault()}>
					{options.map((s, i) => (
						<li
							key={s.value}
							id={`${list}-${i}`}
							role="option"
							aria-selected={i === at}
							class={classes(s.value === value && "chosen")}
							onMouseEnter={() => setAt(i)}
							onClick={() => choose(s)}
						>
							<span>{s.label ?? s.value}</span>
							{s.detail && <small>{s.detail}</small>}
						</li>
					))}
					{note && (
						<li role="option" aria-selected={false} aria-disabled class={classes("none", wrong !== undefined && "mistake")}>
							{note}
						</li>
					)}
				</ul>
			)}
			{wrong !== undefined && (
				<p class="visually-hidden" role="alert">
					{note}
				</p>
			)}
		</div>
	);
}

/** What was typed comes first, as the suggestion that reads like it or has it as its value, or as it is if that can be chosen. */
export function offered(found: Suggestion[], typed: string, free = false): Suggestion[] {
	if (!typed) return found;
	const same = found.find((s) => s.label === typed && !s.unseen) ?? found.find((s) => s.value === typed);
	if (same) return [same, ...found.filter((s) => s !== same)];
	return free ? [{ value: typed, label: `“${typed}”` }, ...found] : found;
}
