import { Combobox } from "../ui/combobox";
import { everyFilterType, type FilterType, type Property, typeName } from "./filters";
import { useName } from "./name";
import { cohortName, elementKeys, properties, suggested } from "./suggest";

export type { FilterType, Property } from "./filters";

interface PropertyPickerProps {
	/** What the field is called, for screen readers. */
	label: string;
	/** What is chosen; null for nothing yet. */
	value: Property | null;
	onValue: (property: Property) => void;
	/** The types that are offered. Default: all. */
	types?: readonly FilterType[];
	/** Numbers alone. */
	numeric?: boolean;
	/** The events whose properties are offered; all if empty. */
	events?: readonly string[];
	placeholder?: string;
	id?: string;
}

/** A field that chooses a property, a cohort or an expression, with suggestions from the project's data. */
export function PropertyPicker({
	label,
	value,
	onValue,
	types = everyFilterType,
	numeric,
	events,
	placeholder,
	...rest
}: PropertyPickerProps) {
	const name = usePropertyName(value);
	return (
		<Combobox
			{...rest}
			placeholder={placeholder ?? "Choose a property"}
			label={label}
			value={name}
			suggest={(text, signal) => properties(text, { types, numeric, events }, signal)}
			onValue={(_, s) => {
				const chosen = suggested<Property>(s);
				if (chosen) onValue(chosen);
			}}
		/>
	);
}

/** What a property is called: its name, and its type unless it is one of events. */
export function usePropertyName(p: Property | null): string {
	const cohort = p?.type === "cohort" ? p.key : "";
	const name = useName(cohort, (signal) => cohortName(cohort, signal));
	if (!p?.key) return "";
	switch (p.type) {
		case "event":
		case "hogql":
			return p.key;
		case "cohort":
			return name || p.label || `Cohort ${p.key}`;
		case "element":
			return elementKeys[p.key] ?? p.key;
	}
	return `${p.key} (${typeName(p.type).toLowerCase()})`;
}
