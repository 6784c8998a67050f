import { X } from "lucide-preact";
import { useId } from "preact/hooks";
import { readNumber } from "../api/json";
import { useResource } from "../api/use";
import { IconButton, Select } from "../ui/basics";
import { Combobox } from "../ui/combobox";
import { type FilterType, isCohortType, newFilter, type Property, propertyOf } from "./filters";
import { DraftInput, ExactInput } from "./inputs";
import { type Fields, listOf, textOf, withFields } from "./json";
import { MistakeAt } from "./mistakes";
import { isDate } from "./dates";
import { type Operator, operatorOf, operatorsFor, operatorsOf, type PropertyType, valuesOf, withOperator } from "./operators";
import { PropertyPicker, usePropertyName } from "./property-picker";
import { cohorts, propertyType, suggested, values } from "./suggest";

interface FilterRowProps {
	filter: Fields;
	onFilter: (filter: Fields) => void;
	onRemove: () => void;
	/** The types that the property can be changed to. */
	types?: readonly FilterType[];
	/** The events whose properties and values are offered; all if empty. */
	events?: readonly string[];
	/** The place of the filter in the query, such as properties.0, for mistakes. */
	at?: string;
}

/** One filter by a property: the property, an operator and its value. What it does not know is shown as text, and kept. */
export function FilterRow({ filter, onFilter, onRemove, types, events, at }: FilterRowProps) {
	const property = propertyOf(filter);
	const known = useResource(() => propertyType(property), [property.type, property.key, property.group_type_index]);
	const name = usePropertyName(property) || "filter";
	return (
		<div class="editor-filter" role="group" aria-label={`Filter by ${name}`}>
			<div class="editor-filter-parts">
				<Parts
					filter={filter}
					property={property}
					declared={known.data ?? null}
					onFilter={onFilter}
					types={types}
					events={events}
					name={name}
				/>
			</div>
			<IconButton label={`Remove the filter by ${name}`} small onClick={onRemove}>
				<X size={14} />
			</IconButton>
			<MistakeAt field={at} />
		</div>
	);
}

interface PartsProps extends Omit<FilterRowProps, "onRemove" | "at"> {
	property: Property;
	declared: PropertyType;
	name: string;
}

function Parts({ filter, property, declared, onFilter, types, events, name }: PartsProps) {
	if (property.type === "behavioral") {
		return (
			<p class="editor-kept">
				{filter.negation === true ? "Did not do" : "Did"} “{String(filter.key)}” ({textOf(filter.value).replaceAll("_", " ")})
			</p>
		);
	}
	if (property.type === "hogql") {
		return (
			<DraftInput
				class="editor-code"
				aria-label="SQL expression"
				value={property.key}
				onValue={(key) => {
					if (key.trim()) onFilter(withFields(filter, { key }));
				}}
			/>
		);
	}
	const operators = operatorsOf(filter, declared);
	const operator = operators.find((o) => o.value === operatorOf(filter)) ?? (operators[0] as Operator);
	const change = (next: Property) => onFilter(changed(filter, next));
	return (
		<>
			{isCohortType(property.type) ? null : (
				<PropertyPicker label="Property" value={property} types={types} events={events} onValue={change} />
			)}
			<Select
				aria-label={`How ${name} is compared`}
				value={operator.value}
				choices={operators}
				onValue={(value) => {
					const chosen = operators.find((o) => o.value === value);
					if (chosen) onFilter(withOperator(filter, chosen));
				}}
			/>
			<Value filter={filter} property={property} operator={operator} onFilter={onFilter} events={events} name={name} />
		</>
	);
}

/** A filter that looks at something else. Its operator and value go unless they can stay. */
function changed(filter: Fields, to: Property): Fields {
	const operator = operatorOf(filter);
	const offered = operatorsFor(to.type, to.key, null);
	return newFilter(to, offered.some((o) => o.value === operator) ? operator : (offered[0]?.value ?? "exact"));
}

function Value({ filter, property, operator, onFilter, events, name }: Omit<PartsProps, "declared" | "types"> & { operator: Operator }) {
	const set = (value: unknown) => onFilter(withFields(filter, { value }));
	const label = `Value of ${name}`;
	const suggest = (text: string, signal: AbortSignal) => values(property, text, events ?? [], signal);
	switch (operator.input) {
		case "none":
			return null;
		case "cohort":
			return (
				<Combobox
					label="Cohort"
					value={name}
					suggest={cohorts}
					onValue={(_, s) => {
						const chosen = suggested<Property>(s);
						if (chosen) onFilter(withFields(filter, { value: Number(chosen.key), cohort_name: undefined }));
					}}
				/>
			);
		case "boolean":
			return (
				<Select
					aria-label={label}
					value={valuesOf(filter.value)[0] ?? ""}
					choices={[
						{ value: "", label: "Choose…" },
						{ value: "true", label: "true" },
						{ value: "false", label: "false" },
					]}
					onValue={(value) => set(value ? [value] : null)}
				/>
			);
		case "number":
			return <ExactInput aria-label={label} value={numbersOf(filter.value)[0]} onValue={(n) => set(n ?? null)} />;
		case "range":
			return <RangeInput label={label} value={filter.value} onValue={set} />;
		case "date":
			return <DateInput label={label} value={textOf(filter.value)} onValue={set} />;
		case "one":
			return (
				<Combobox
					label={label}
					placeholder="Value"
					value={valuesOf(filter.value)[0] ?? ""}
					suggest={suggest}
					onValue={(value) => set(value || null)}
					free
					keep
				/>
			);
		case "several":
			return <Values label={label} value={filter.value} suggest={suggest} onValue={set} />;
	}
}

/** The values of a filter as numbers; undefined for those that are none. */
const numbersOf = (value: unknown) => valuesOf(value).map((text) => readNumber(text) ?? undefined);

/** Values of which one has to match. Each can be taken out. */
function Values({
	label,
	value,
	suggest,
	onValue,
}: {
	label: string;
	value: unknown;
	suggest: Parameters<typeof Combobox>[0]["suggest"];
	onValue: (value: unknown) => void;
}) {
	const shown = valuesOf(value);
	const raw = Array.isArray(value) ? listOf(value) : shown;
	return (
		<div class="editor-values">
			{shown.map((text, i) => (
				<span key={`${i} ${text}`} class="editor-chip">
					<span>{text}</span>
					<button
						type="button"
						aria-label={`Remove ${text}`}
						onClick={() => {
							const rest = raw.filter((_, j) => j !== i);
							onValue(rest.length > 0 ? rest : null);
						}}
					>
						<X size={12} aria-hidden="true" />
					</button>
				</span>
			))}
			<Combobox
				label={label}
				value=""
				placeholder={shown.length > 0 ? "or…" : "Value"}
				suggest={suggest}
				onValue={(added) => {
					if (added && !shown.includes(added)) onValue([...raw, added]);
				}}
				free
				many
				keep
			/>
		</div>
	);
}

/** Two numbers in order. They count once there are both. */
function RangeInput({ label, value, onValue }: { label: string; value: unknown; onValue: (value: unknown) => void }) {
	const [low, high] = numbersOf(value);
	const id = useId();
	const set = (a: typeof low, b: typeof high) => {
		const [from, to] = [a ?? b, b ?? a];
		if (from === undefined || to === undefined) onValue(null);
		else onValue(from < to ? [from, to] : [to, from]);
	};
	return (
		<div class="editor-pair" id={id}>
			<ExactInput aria-label={`${label}, from`} value={low} onValue={(n) => set(n, high)} />
			<span>to</span>
			<ExactInput aria-label={`${label}, to`} value={high} onValue={(n) => set(low, n)} />
		</div>
	);
}

/** A date as ISO 8601 or relative to now. Others are not taken. */
function DateInput({ label, value, onValue }: { label: string; value: string; onValue: (value: string) => void }) {
	const take = (text: string) => {
		if (isDate(text)) onValue(text.trim());
	};
	const offered = [
		{ value: "-1d", label: "1 day ago" },
		{ value: "-7d", label: "7 days ago" },
		{ value: "-30d", label: "30 days ago" },
		{ value: "-90d", label: "90 days ago" },
		{ value: "-1y", label: "1 year ago" },
		{ value: "dStart", label: "Start of today" },
	];
	return (
		<Combobox
			label={label}
			value={value}
			placeholder="2026-01-31 or -7d"
			suggest={async (text) => {
				const found = offered.filter((o) => !text || o.value.includes(text) || o.label.toLowerCase().includes(text.toLowerCase()));
				return isDate(text) && !offered.some((o) => o.value === text) ? [{ value: text }, ...found] : found;
			}}
			onValue={take}
			keep
		/>
	);
}
