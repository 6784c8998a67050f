import { Plus, X } from "lucide-preact";
import { Button, IconButton, Select } from "../ui/basics";
import { Combobox } from "../ui/combobox";
import type { Filter } from "./events";
import { propertyNames, propertyValues } from "./fields";
import { isFilled, operatorsOf, readValue, takesValue, valueText } from "./operators";

const types = [
	{ value: "event", label: "Event" },
	{ value: "person", label: "Person" },
] as const;

/** Filters by properties, all of which have to hold. Filters of other kinds are shown as JSON, and kept. */
export function PropertyFilters({
	filters,
	onFilters,
	label,
	people,
	disabled,
}: {
	filters: readonly Filter[];
	onFilters: (filters: Filter[]) => void;
	label: string;
	/** Properties of people alone. */
	people?: boolean;
	disabled?: boolean;
}) {
	const change = (at: number, filter: Filter) => onFilters(filters.map((f, i) => (i === at ? filter : f)));
	return (
		<fieldset class="data-filters">
			<legend>{label}</legend>
			{filters.map((filter, i) => (
				<div class="data-filter" key={i}>
					<PropertyFilter filter={filter} onFilter={(f) => change(i, f)} people={people} disabled={disabled} />
					{!disabled && (
						<IconButton label="Remove the filter" onClick={() => onFilters(filters.filter((_, at) => at !== i))}>
							<X size={14} />
						</IconButton>
					)}
				</div>
			))}
			{!disabled && (
				<Button
					small
					icon={<Plus size={14} aria-hidden="true" />}
					onClick={() => onFilters([...filters, { type: people ? "person" : "event", key: "", operator: "exact", value: [] }])}
				>
					Add a filter
				</Button>
			)}
		</fieldset>
	);
}

/** One filter by a property. */
export function PropertyFilter({
	filter,
	onFilter,
	people,
	disabled,
}: {
	filter: Filter;
	onFilter: (filter: Filter) => void;
	people?: boolean;
	disabled?: boolean;
}) {
	const type = filter.type ?? "event";
	if (type !== "event" && type !== "person") return <code class="data-other">{JSON.stringify(filter)}</code>;
	const key = String(filter.key ?? "");
	const operator = String(filter.operator ?? "exact");
	return (
		<>
			{!people && (
				<Select
					aria-label="Kind of property"
					value={type}
					choices={types}
					disabled={disabled}
					onValue={(next) => onFilter({ ...filter, type: next, key: "", value: [] })}
				/>
			)}
			<Combobox
				label="Property"
				placeholder="Property"
				value={key}
				free
				disabled={disabled}
				suggest={(search, signal) => propertyNames(type, search, signal)}
				onValue={(next) => onFilter({ ...filter, key: next, value: takesValue(operator) ? [] : filter.value })}
			/>
			<Select
				aria-label="Comparison"
				value={operator}
				choices={operatorsOf(operator)}
				disabled={disabled}
				onValue={(next) => onFilter(readValue({ ...filter, operator: next }, valueText(filter.value)))}
			/>
			{takesValue(operator) && (
				<Combobox
					label="Value"
					placeholder="Value"
					value={valueText(filter.value)}
					free
					disabled={disabled}
					suggest={(search, signal) => propertyValues(type, key, search, signal)}
					onValue={(next) => onFilter(readValue(filter, next))}
				/>
			)}
		</>
	);
}

/** The filters that say something. */
export const filled = (filters: readonly Filter[]): Filter[] => filters.filter(isFilled);
