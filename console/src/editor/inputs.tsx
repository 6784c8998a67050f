import type { JSX } from "preact";
import { useState } from "preact/hooks";

type DraftProps = Omit<JSX.InputHTMLAttributes<HTMLInputElement>, "value" | "onInput" | "onBlur" | "onKeyDown"> & {
	value: string;
	/** Gets the text when the field is left or Enter is pressed, if it has changed. */
	onValue: (value: string) => void;
};

/** A text field that changes nothing before it is left or Enter is pressed. Escape takes the change back. */
export function DraftInput({ value, onValue, ...rest }: DraftProps) {
	const [draft, setDraft] = useState<string | null>(null);
	const commit = () => {
		setDraft(null);
		if (draft !== null && draft !== value) onValue(draft);
	};
	return (
		<input
			type="text"
			autocomplete="off"
			spellcheck={false}
			{...rest}
			value={draft ?? value}
			onInput={(event) => setDraft(event.currentTarget.value)}
			onBlur={commit}
			onKeyDown={(event) => {
				if (event.key === "Enter") {
					event.preventDefault();
					commit();
				} else if (event.key === "Escape" && draft !== null) {
					event.stopPropagation();
					setDraft(null);
				}
			}}
		/>
	);
}

type NumberProps = Omit<DraftProps, "value" | "onValue"> & {
	value: number | null | undefined;
	/** Gets the number; undefined when the field was emptied. */
	onValue: (value: number | undefined) => void;
	/** Whether it may have a fraction. */
	fraction?: boolean;
};

/** A field for a number. What is none is not taken. */
export function NumberInput({ value, onValue, fraction, min, max, ...rest }: NumberProps) {
	const take = (text: string) => {
		if (text.trim() === "") {
			onValue(undefined);
			return;
		}
		const n = Number(text);
		if (Number.isNaN(n)) return;
		const least = min === undefined ? -Infinity : Number(min);
		const most = max === undefined ? Infinity : Number(max);
		onValue(Math.min(most, Math.max(least, fraction ? n : Math.trunc(n))));
	};
	return (
		<DraftInput
			inputMode={fraction ? "decimal" : "numeric"}
			{...rest}
			type="number"
			step={fraction ? "any" : 1}
			min={min}
			max={max}
			value={value === null || value === undefined ? "" : String(value)}
			onValue={take}
		/>
	);
}
