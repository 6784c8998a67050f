import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { readNumber } from "../api/json";

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
					event.preventDefault(); // else the dialog around it closes, too
					setDraft(null);
				}
			}}
		/>
	);
}

type NumberProps<T> = Omit<DraftProps, "value" | "onValue"> & {
	value: T | null | undefined;
	/** Gets the number; undefined when the field was emptied. */
	onValue: (value: T | undefined) => void;
};

/** A field for any number. It keeps all digits of a whole one. What is none is not taken. */
export function ExactInput({ value, onValue, ...rest }: NumberProps<number | bigint>) {
	const take = (text: string) => {
		const n = readNumber(text);
		if (n !== null || text.trim() === "") onValue(n ?? undefined);
	};
	return <DraftInput inputMode="decimal" step="any" {...rest} type="number" value={value?.toString() ?? ""} onValue={take} />;
}

/** A field for a whole number within bounds, such as a count. */
export function NumberInput({ onValue, min, max, ...rest }: NumberProps<number>) {
	const least = min === undefined ? -Infinity : Number(min);
	const most = max === undefined ? Infinity : Number(max);
	return (
		<ExactInput
			inputMode="numeric"
			step={1}
			min={min}
			max={max}
			{...rest}
			onValue={(n) => onValue(n === undefined ? undefined : Math.min(most, Math.max(least, Math.trunc(Number(n)))))}
		/>
	);
}
