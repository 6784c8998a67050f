import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Button, classes, stepped } from "./basics";

/** One thing that a menu offers. */
export interface MenuItem {
	label: string;
	onSelect: () => void;
	danger?: boolean;
	disabled?: boolean;
	/** Shown at its right, such as a key. */
	hint?: string;
}

/** A button that opens a list of things to do. Arrow keys, Home and End move in it, Escape closes it. */
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
		if (box.current) place(box.current);
		box.current?.querySelector<HTMLElement>("[role=menuitem]:not(:disabled)")?.focus();
		const shut = () => setOpen(false);
		const outside = (event: Event) => {
			if (!box.current?.contains(event.target as Node)) setOpen(false);
		};
		document.addEventListener("pointerdown", outside);
		window.addEventListener("scroll", shut, true);
		window.addEventListener("resize", shut);
		return () => {
			document.removeEventListener("pointerdown", outside);
			window.removeEventListener("scroll", shut, true);
			window.removeEventListener("resize", shut);
		};
	}, [open]);
	const close = () => {
		setOpen(false);
		box.current?.querySelector<HTMLElement>("button")?.focus();
	};
	const keys = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
		if (!open) return;
		if (event.key === "Escape") {
			event.stopPropagation();
			event.preventDefault(); // else the dialog around it closes, too
			close();
			return;
		}
		if (event.key === "Tab") setOpen(false);
		const all = [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? [])];
		const to = stepped(event.key, "ArrowUp", "ArrowDown", all.indexOf(document.activeElement as HTMLElement), all.length);
		if (to === null) return;
		event.preventDefault();
		all[to]?.focus();
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

/** Puts the list below its button, or above it where there is no room: over what would cut it off, such as a table that scrolls. */
function place(box: HTMLElement): void {
	const list = box.querySelector<HTMLElement>(".menu-list");
	if (!list) return;
	const button = box.getBoundingClientRect();
	const { height, width } = list.getBoundingClientRect();
	const below = button.bottom + 4;
	const top = below + height > window.innerHeight ? Math.max(4, button.top - 4 - height) : below;
	list.style.position = "fixed";
	list.style.top = `${top}px`;
	list.style.left = `${Math.max(4, button.right - width)}px`;
	list.style.right = "auto";
}
