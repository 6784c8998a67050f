import { FilterGroup } from "../editor/filter-group";
import { everyFilterType, type FilterType, membersOf } from "../editor/filters";
import { fieldsOf } from "../editor/json";
import type { Filter } from "./events";

/** Filters, all of which have to hold. */
export function PropertyFilters({
	filters,
	onFilters,
	label,
	types = everyFilterType,
	events,
	disabled,
}: {
	filters: readonly Filter[];
	onFilters: (filters: Filter[]) => void;
	label: string;
	/** What can be filtered by. Default: all that queries know. */
	types?: readonly FilterType[];
	/** The events whose properties are offered; all if empty. */
	events?: readonly string[];
	disabled?: boolean;
}) {
	return (
		<fieldset class="data-filters" disabled={disabled}>
			<legend>{label}</legend>
			<FilterGroup
				label={label}
				value={[...filters]}
				types={types}
				events={events}
				onValue={(next) => onFilters(membersOf(next).map(fieldsOf))}
			/>
		</fieldset>
	);
}

/** Comparisons without a value. */
const bare = new Set(["is_set", "is_not_set"]);

/** The filters that say something: others have no effect yet. */
export function filled(filters: readonly Filter[]): Filter[] {
	return filters.filter(({ type, value, operator, key }) => {
		if (type === "hogql" || bare.has(String(operator))) return Boolean(key);
		return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
	});
}
