import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useState } from "preact/hooks";
import { ApiError, messageOf } from "../api/client";
import type { Resource } from "../api/use";
import { copyText } from "./copy";
import { plainText, useHeading } from "./title";

/** Joins the names of classes that apply. */
export const classes = (...names: (string | false | null | undefined)[]): string => names.filter(Boolean).join(" ");

type ButtonProps = JSX.ButtonHTMLAttributes<HTMLButtonElement> & {
	look?: "primary" | "plain" | "quiet" | "danger";
	/** Shows that what it began is not done, and takes no clicks. */
	busy?: boolean;
	icon?: ComponentChildren;
	small?: boolean;
};

export function Button({ look = "plain", busy, icon, small, children, class: more, disabled, ...rest }: ButtonProps) {
	return (
		<button
			type="button"
			{...rest}
			disabled={disabled || busy}
			aria-busy={busy || undefined}
			class={classes("button", `button-${look}`, small && "button-small", more as string)}
		>
			{icon}
			{children}
		</button>
	);
}

/** A button that is an icon alone. `label` is its name for screen readers, and its tooltip. */
export function IconButton({ label, children, ...rest }: ButtonProps & { label: string }) {
	return (
		<Button look="quiet" {...rest} aria-label={label} title={label} class={classes("button-icon", rest.class as string)}>
			{children}
		</Button>
	);
}

/** A labelled control with a hint and what is wrong with it, which screen readers read with it. `children` gets the id that the label names. */
export function Field({
	label,
	hint,
	error,
	children,
	inline,
	hideLabel,
}: {
	label: string;
	hint?: ComponentChildren;
	error?: string | null;
	children: (id: string) => ComponentChildren;
	inline?: boolean;
	hideLabel?: boolean;
}) {
	const id = useId();
	const about = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
	useLayoutEffect(() => {
		const control = document.getElementById(id); // a part of another component for most fields
		setOrRemove(control, "aria-describedby", about);
		setOrRemove(control, "aria-invalid", error ? "true" : "");
	});
	return (
		<div class={classes("field", inline && "field-inline", !!error && "field-wrong")}>
			<label for={id} class={hideLabel ? "visually-hidden" : undefined}>
				{label}
			</label>
			{children(id)}
			{hint && (
				<p class="hint" id={`${id}-hint`}>
					{hint}
				</p>
			)}
			{error && (
				<p class="mistake" role="alert" id={`${id}-error`}>
					{error}
				</p>
			)}
		</div>
	);
}

/** Sets an attribute of an element, or removes it if there is nothing to set. */
function setOrRemove(element: HTMLElement | null, name: string, value: string): void {
	if (value) element?.setAttribute(name, value);
	else element?.removeAttribute(name);
}

type TextProps = Omit<JSX.InputHTMLAttributes<HTMLInputElement>, "onInput" | "value"> & { value: string; onValue: (value: string) => void };

/** A field for a line of text. Spaces alone are not what `required` asks for. */
export function TextInput({ onValue, ...rest }: TextProps) {
	const blank = rest.required === true && rest.value !== "" && rest.value.trim() === "";
	return (
		<input
			type="text"
			autocomplete="off"
			spellcheck={false}
			{...rest}
			ref={(input) => input?.setCustomValidity(blank ? "Please enter more than spaces." : "")}
			onInput={(event) => onValue(event.currentTarget.value)}
		/>
	);
}

type AreaProps = Omit<JSX.TextareaHTMLAttributes<HTMLTextAreaElement>, "onInput" | "value"> & {
	value: string;
	onValue: (value: string) => void;
};

/** A field for a text of several lines, such as a description. */
export function TextArea({ onValue, ...rest }: AreaProps) {
	return <textarea rows={3} {...rest} onInput={(event) => onValue(event.currentTarget.value)} />;
}

export interface Choice<T extends string> {
	value: T;
	label: string;
	disabled?: boolean;
}

type SelectProps<T extends string> = Omit<JSX.SelectHTMLAttributes<HTMLSelectElement>, "onChange" | "value"> & {
	value: T;
	choices: readonly Choice<T>[];
	onValue: (value: T) => void;
};

/** A list of a few values, of which one is chosen. */
export function Select<T extends string>({ choices, onValue, ...rest }: SelectProps<T>) {
	return (
		<select {...rest} onChange={(event) => onValue(event.currentTarget.value as T)}>
			{choices.map((c) => (
				<option key={c.value} value={c.value} disabled={c.disabled}>
					{c.label}
				</option>
			))}
		</select>
	);
}

export function Checkbox({
	label,
	checked,
	onValue,
	disabled,
}: {
	label: ComponentChildren;
	checked: boolean;
	onValue: (checked: boolean) => void;
	disabled?: boolean;
}) {
	return (
		<label class="checkbox">
			<input type="checkbox" checked={checked} disabled={disabled} onChange={(event) => onValue(event.currentTarget.checked)} />
			<span>{label}</span>
		</label>
	);
}

export function Badge({ tone = "plain", children }: { tone?: "plain" | "good" | "warn" | "bad" | "accent"; children: ComponentChildren }) {
	return <span class={`badge badge-${tone}`}>{children}</span>;
}

/** The head of a page: its title, which the document gets as well, what it is about, and what can be done. */
export function PageHead({
	title,
	about,
	children,
}: {
	title: ComponentChildren;
	about?: ComponentChildren;
	children?: ComponentChildren;
}) {
	useHeading(plainText(title));
	return (
		<header class="page-head">
			<div>
				<h1 id="page-title">{title}</h1>
				{about && <p class="about">{about}</p>}
			</div>
			{children && <div class="actions">{children}</div>}
		</header>
	);
}

/** A box with a title of its own. */
export function Card({
	title,
	actions,
	children,
	class: more,
}: {
	title?: ComponentChildren;
	actions?: ComponentChildren;
	children: ComponentChildren;
	class?: string;
}) {
	return (
		<section class={classes("card", more)}>
			{(title || actions) && (
				<header class="card-head">
					{title && <h2>{title}</h2>}
					{actions && <div class="actions">{actions}</div>}
				</header>
			)}
			{children}
		</section>
	);
}

/** What a list shows that has nothing. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
	return (
		<div class="empty">
			<p class="empty-title">{title}</p>
			{children}
		</div>
	);
}

/** An error, with a button that tries again if that can help. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
	const missing = error instanceof ApiError && error.status === 403;
	return (
		<div class="failure" role="alert">
			<p>{messageOf(error)}</p>
			{retry && !missing && (
				<Button small onClick={retry}>
					Try again
				</Button>
			)}
		</div>
	);
}

/** Grey bars where something will be. */
export function Loading({ rows = 3, label = "Loading" }: { rows?: number; label?: string }) {
	return (
		<div class="loading" role="status" aria-label={label}>
			{Array.from({ length: rows }, (_, i) => (
				<span key={i} class="loading-bar" />
			))}
		</div>
	);
}

/** What is loaded, or that it is loading, or why it cannot be. */
export function Loaded<T>({ of, children, rows }: { of: Resource<T>; children: (data: T) => ComponentChildren; rows?: number }) {
	if (of.data !== undefined) {
		return (
			<>
				{of.error !== undefined && <Failure error={of.error} retry={of.reload} />}
				{children(of.data)}
			</>
		);
	}
	if (of.error !== undefined) return <Failure error={of.error} retry={of.reload} />;
	return <Loading rows={rows} />;
}

/** Puts a text on the clipboard, and says that it did. */
export function CopyButton({
	text,
	label = "Copy",
	small = true,
}: {
	text: string | (() => string | Promise<string>);
	label?: string;
	small?: boolean;
}) {
	const [done, setDone] = useState("");
	const copy = async () => {
		try {
			await copyText(typeof text === "string" ? text : await text());
			setDone("Copied");
			setTimeout(() => setDone(""), 1500);
		} catch (error) {
			setDone(messageOf(error));
			setTimeout(() => setDone(""), 5000);
		}
	};
	return (
		<Button small={small} onClick={copy}>
			<span aria-live="polite">{done || label}</span>
		</Button>
	);
}

/** A text to copy: a command, a snippet, a key. */
export function Snippet({ text, label }: { text: string; label: string }) {
	return (
		<figure class="snippet">
			<pre tabIndex={0} role="group" aria-label={label}>
				<code>{text}</code>
			</pre>
			<CopyButton text={text} />
		</figure>
	);
}

/** Where a key moves to in a list that begins again after its end; null for other keys. Home and End go to its ends. */
export function stepped(key: string, back: string, on: string, at: number, count: number): number | null {
	switch (key) {
		case "Home":
			return 0;
		case "End":
			return count - 1;
		case back:
			return at > 0 ? at - 1 : count - 1;
		case on:
			return at < count - 1 ? at + 1 : 0;
		default:
			return null;
	}
}

/** A tab list with the view that is shown. Arrow keys, Home and End choose another. */
export function Tabs<T extends string>({
	value,
	choices,
	onValue,
	label,
	children,
}: {
	value: T;
	choices: readonly Choice<T>[];
	onValue: (value: T) => void;
	label: string;
	/** The view of the tab that is chosen. */
	children: ComponentChildren;
}) {
	const id = useId();
	const move = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
		const at = choices.findIndex((c) => c.value === value);
		const next = stepped(event.key, "ArrowLeft", "ArrowRight", at, choices.length);
		const wanted = next === null ? undefined : choices[next];
		if (next === null || !wanted || event.ctrlKey || event.metaKey || event.altKey) return;
		event.preventDefault();
		onValue(wanted.value);
		(event.currentTarget.children[next] as HTMLElement | undefined)?.focus();
	};
	return (
		<>
			<div role="tablist" aria-label={label} class="tabs" onKeyDown={move}>
				{choices.map((c) => (
					<button
						key={c.value}
						type="button"
						role="tab"
						id={`${id}-${c.value}`}
						aria-selected={c.value === value}
						aria-controls={c.value === value ? `${id}-panel` : undefined}
						tabIndex={c.value === value ? 0 : -1}
						onClick={() => onValue(c.value)}
					>
						{c.label}
					</button>
				))}
			</div>
			<div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${value}`}>
				{children}
			</div>
		</>
	);
}

/** A row of buttons of which one is chosen. */
export function Segments<T extends string>({
	value,
	choices,
	onValue,
	label,
}: {
	value: T;
	choices: readonly Choice<T>[];
	onValue: (value: T) => void;
	label: string;
}) {
	return (
		<fieldset class="segments">
			<legend class="visually-hidden">{label}</legend>
			{choices.map((c) => (
				<button key={c.value} type="button" aria-pressed={c.value === value} disabled={c.disabled} onClick={() => onValue(c.value)}>
					{c.label}
				</button>
			))}
		</fieldset>
	);
}
