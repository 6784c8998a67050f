import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Button, classes } from "./basics";

/** One thing that a menu offers. */
export interface MenuItem {
	label: string;
	onSelect: () => void;
	danger?: boolean;
	disabled?: boolean;
	/** Shown at its right, such as a key. */
	hint?: string;
}

/** A button that opens a list of things to do. Arrow keys move in it, Escape closes it. */
export function Menu({
	label,
	children,
	items,
	icon,
}: {
	label: string;
	/** What the button shows; its label if nothing. */
	children?: ComponentChildren;
	items: MenuItem[];
	/** Whether the button is an icon alone. */
	icon?: boolean;
}) {
	const [open, setOpen] = useState(false);
	const box = useRef<HTMLDivElement>(null);
	const id = useId();
	useEffect(() => {
		if (!open) return;
		box.current?.querySelector<HTMLElement>("[role=menuitem]:not(:disabled)")?.focus();
		const outside = (event: Event) => {
			if (!box.current?.contains(event.target as Node)) setOpen(false);
		};
		document.addEventListener("pointerdown", outside);
		return () => document.removeEventListener("pointerdown", outside);
	}, [open]);
	const close = () => {
		setOpen(false);
		box.current?.querySelector<HTMLElement>("button")?.focus();
	};
	const keys = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
		if (!open) return;
		if (event.key === "Escape") {
			event.stopPropagation();
			close();
			return;
		}
		if (event.key === "Tab") setOpen(false);
		const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (!step) return;
		event.preventDefault();
		const all = [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? [])];
		const at = all.indexOf(document.activeElement as HTMLElement);
		all[(at + step + all.length) % all.length]?.focus();
	};
	return (
		<div class="menu" ref={box} onKeyDown={keys}>
			<Button
				look={icon ? "quiet" : "plain"}
				class={icon ? "button-icon" : undefined}
				aria-haspopup="menu"
				aria-expanded={open}
				aria-controls={open ? id : undefined}
				aria-label={children ? label : undefined}
				title={icon ? label : undefined}
				onClick={() => setOpen(!open)}
			>
				{children ?? label}
			</Button>
			{open && (
				<div role="menu" id={id} class="menu-list" aria-label={label}>
					{items.map((item) => (
						<button
							key={item.label}
							type="button"
							role="menuitem"
							disabled={item.disabled}
							class={classes(item.danger && "menu-danger")}
							onClick={() => {
								close();
								item.onSelect();
							}}
						>
							<span>{item.label}</span>
							{item.hint && <kbd>{item.hint}</kbd>}
						</button>
					))}
				</div>
			)}
		</div>
	);
}
