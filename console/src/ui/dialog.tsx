import { signal } from "@preact/signals";
import { X } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { messageOf } from "../api/client";
import { classes, IconButton } from "./basics";

/** What had the focus when a dialog was opened. */
const openers = new WeakMap<Element, Element | null>();

/** Gives the focus to what had it before a dialog that is gone, or to the page if that is gone, too. It stays where it has been put since. */
function giveBack(opener: Element | null): void {
	const lost = () => !document.activeElement || document.activeElement === document.body;
	if (!lost()) return;
	let to: Element | null = opener;
	while (to && !to.isConnected) to = openers.get(to.closest("dialog") ?? to) ?? null;
	if (to instanceof HTMLElement) to.focus({ preventScroll: true });
	if (lost()) document.getElementById("main")?.focus({ preventScroll: true });
}

/** The dialogs that are open, by their names' ids; the last is above the others. */
const openDialogs = signal<readonly string[]>([]);

/** A dialog over the page. The browser keeps the focus in it, and Escape closes it. Then what had the focus before has it again. */
export function Dialog({
	title,
	children,
	onClose,
	wide,
	side,
	firm,
}: {
	title: string;
	children: ComponentChildren;
	onClose: () => void;
	/** Escape asks this instead of closing it, and a click beside it does nothing. */
	firm?: () => void;
	/** As wide as the window allows. */
	wide?: boolean;
	/** At the right side, as high as the window. */
	side?: boolean;
}) {
	const dialog = useRef<HTMLDialogElement>(null);
	const name = useId();
	const pressed = useRef<EventTarget | null>(null);
	const opener = useRef(document.activeElement);
	useEffect(() => {
		if (!dialog.current) return;
		openers.set(dialog.current, opener.current);
		dialog.current.showModal();
		openDialogs.value = [...openDialogs.value, name];
		return () => {
			openDialogs.value = openDialogs.value.filter((open) => open !== name);
			// The dialog leaves the page after this. While it is there, nothing else can have the focus.
			queueMicrotask(() => giveBack(opener.current));
		};
	}, []);
	const escape = useRef(onClose);
	escape.current = firm ?? onClose;
	useEffect(() => {
		// By itself, the browser closes two dialogs with one Escape if a key opened the upper one, and can be kept from it only once.
		const keys = (event: KeyboardEvent) => {
			if (event.key !== "Escape" || event.defaultPrevented || openDialogs.value.at(-1) !== name) return;
			event.preventDefault();
			escape.current();
		};
		document.addEventListener("keydown", keys);
		return () => document.removeEventListener("keydown", keys);
	}, []);
	return (
		<dialog
			ref={dialog}
			class={classes("dialog", wide && "dialog-wide", side && "dialog-side")}
			aria-labelledby={name}
			onClose={onClose}
			onCancel={(event) => {
				if (!firm || event.target !== dialog.current) return; // fields for files send such events, too
				event.preventDefault();
				firm();
			}}
			onPointerDown={(event) => {
				pressed.current = event.target;
			}}
			onClick={(event) => {
				// Selecting text in a field can end outside the dialog.
				if (!firm && event.target === dialog.current && pressed.current === dialog.current) onClose();
			}}
		>
			<div class="dialog-body">
				<header class="dialog-head">
					<h2 id={name}>{title}</h2>
					<IconButton label="Close" onClick={onClose}>
						<X size={16} />
					</IconButton>
				</header>
				{children}
			</div>
			<Toasts dialog={name} />
		</dialog>
	);
}

interface Toast {
	id: number;
	text: string;
	bad: boolean;
}

const toasts = signal<Toast[]>([]);
let lastToast = 0;

/** Shows a short message for some seconds. */
export function toast(text: string, { bad = false } = {}): void {
	const shown = { id: ++lastToast, text, bad };
	toasts.value = [...toasts.value, shown];
	setTimeout(() => {
		toasts.value = toasts.value.filter((t) => t !== shown);
	}, 5000);
}

/** Does something, and shows why it failed if it did. Reports whether it was done. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
	try {
		await work();
		if (done) toast(done);
		return true;
	} catch (error) {
		toast(messageOf(error), { bad: true });
		return false;
	}
}

/** Where the messages appear: in the dialog that is above all others, else in the page. What is below a dialog is neither seen nor read out. */
export function Toasts({ dialog }: { dialog?: string }) {
	const shown = openDialogs.value.at(-1) === dialog ? toasts.value : [];
	const list = (bad: boolean) =>
		shown
			.filter((t) => t.bad === bad)
			.map((t) => (
				<p key={t.id} class={classes("toast", bad && "toast-bad")}>
					{t.text}
				</p>
			));
	return (
		<div class="toasts">
			<div role="status" aria-atomic={false}>
				{list(false)}
			</div>
			<div role="alert" aria-atomic={false}>
				{list(true)}
			</div>
		</div>
	);
}
