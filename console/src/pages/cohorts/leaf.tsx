import { X } from "lucide-preact";
import { stringify } from "../../api/json";
import { PropertyFilters } from "../../data/filters";
import { type Entity, EventPicker } from "../../editor/event-picker";
import { FilterRow } from "../../editor/filter-row";
import { NumberInput } from "../../editor/inputs";
import { fieldsOf, listOf, numberOf, textOf, withFields } from "../../editor/json";
import { useName } from "../../editor/name";
import { cohortName, cohorts } from "../../editor/suggest";
import { PropertyPicker } from "../../editor/property-picker";
import { IconButton, Select, TextInput } from "../../ui/basics";
import { Combobox } from "../../ui/combobox";
import { counted, kindOf, kinds, type Kind, type Leaf, newLeaf, recent, undated, unfiltered } from "./criteria";

const intervals = ["minute", "hour", "day", "week", "month", "year"].map((value) => ({ value, label: `${value}s` }));
const counts = [
	{ value: "gte", label: "at least" },
	{ value: "lte", label: "at most" },
	{ value: "gt", label: "more than" },
	{ value: "lt", label: "fewer than" },
	{ value: "eq", label: "exactly" },
];
const eventFilterTypes = ["event", "element", "hogql"] as const;
const personTypes = ["person"] as const;

interface LeafProps {
	leaf: Leaf;
	onLeaf: (leaf: Leaf) => void;
	onRemove: () => void;
	/** The names of its fields begin with it, for screen readers. */
	label: string;
}

/** The fields of one condition of a cohort. */
export function LeafEditor({ leaf, onLeaf, onRemove, label }: LeafProps) {
	const kind = kindOf(leaf);
	const set = (changes: Leaf) => onLeaf(withFields(leaf, changes));
	return (
		<div class="cohorts-leaf" role="group" aria-label={label}>
			<div class="cohorts-parts">
				<Select
					aria-label={`${label}: include or leave out`}
					value={leaf.negation === true ? "not" : ""}
					choices={[
						{ value: "", label: "Include people who" },
						{ value: "not", label: "Leave out people who" },
					]}
					onValue={(not) => set({ negation: not ? true : undefined })}
				/>
				{kind ? (
					<Select aria-label={`${label}: kind`} value={kind} choices={kinds} onValue={(next) => onLeaf(newLeaf(next as Kind, leaf))} />
				) : (
					<code class="data-other">{stringify(leaf)}</code>
				)}
				<IconButton label={`Remove ${label.toLowerCase()}`} onClick={onRemove}>
					<X size={14} />
				</IconButton>
			</div>
			<Parts kind={kind} leaf={leaf} set={set} onLeaf={onLeaf} label={label} />
		</div>
	);
}

interface PartsProps {
	kind: Kind | null;
	leaf: Leaf;
	set: (changes: Leaf) => void;
	onLeaf: (leaf: Leaf) => void;
	label: string;
}

function Parts(props: PartsProps) {
	switch (props.kind) {
		case null:
			return null;
		case "person":
			return <PersonParts {...props} />;
		case "cohort":
			return <CohortParts {...props} />;
		case "person_metadata":
			return <CreatedParts {...props} />;
	}
	return <BehaviorParts {...props} />;
}

function PersonParts({ leaf, onLeaf, label }: PartsProps) {
	const negation = leaf.negation === true ? { negation: true } : {};
	if (!leaf.key) {
		return (
			<PropertyPicker
				label={`${label}: property`}
				value={null}
				types={personTypes}
				onValue={(property) => onLeaf({ type: "person", key: property.key, operator: "exact", value: [], ...negation })}
			/>
		);
	}
	return (
		<FilterRow
			filter={leaf}
			types={personTypes}
			onFilter={(filter) => onLeaf({ ...filter, type: "person", ...negation })}
			onRemove={() => onLeaf(newLeaf("person", leaf))}
		/>
	);
}

function CohortParts({ leaf, set, label }: PartsProps) {
	const id = leaf.value === null || leaf.value === undefined ? "" : String(leaf.value);
	const name = useName(id, (signal) => cohortName(id, signal));
	return (
		<Combobox
			label={`${label}: cohort`}
			placeholder="Choose a cohort"
			value={id}
			shown={name || id}
			suggest={async (text, signal) =>
				(await cohorts(text, signal)).map((found) => ({ value: found.of?.key ?? found.value, label: found.label }))
			}
			onValue={(value) => set({ value: Number(value) })}
		/>
	);
}

const datings = [
	{ value: "is_date_after", label: "after" },
	{ value: "is_date_before", label: "before" },
	{ value: "is_date_exact", label: "on" },
];

function CreatedParts({ leaf, set, label }: PartsProps) {
	return (
		<div class="cohorts-parts">
			<Select
				aria-label={`${label}: comparison`}
				value={textOf(leaf.operator)}
				choices={datings}
				onValue={(operator) => set({ operator })}
			/>
			<TextInput
				aria-label={`${label}: date`}
				value={textOf(leaf.value)}
				placeholder="2026-01-31 or -30d"
				onValue={(value) => set({ value })}
			/>
		</div>
	);
}

function BehaviorParts({ kind, leaf, set, label }: PartsProps) {
	return (
		<>
			<EntityField label={`${label}: event`} leaf={leaf} set={set} name="key" type="event_type" />
			{counted.includes(kind) && (
				<div class="cohorts-parts">
					<Select
						aria-label={`${label}: how the number is compared`}
						value={textOf(leaf.operator) === "exact" ? "eq" : textOf(leaf.operator) || "eq"}
						choices={counts}
						onValue={(operator) => set({ operator })}
					/>
					<Whole label={`${label}: times`} leaf={leaf} set={set} name="operator_value" />
					<span>times</span>
				</div>
			)}
			{kind === "performed_event_regularly" ? (
				<Periods leaf={leaf} set={set} label={label} />
			) : (
				<Window leaf={leaf} set={set} label={label} dates={!undated.includes(kind)} />
			)}
			{kind === "performed_event_sequence" && (
				<>
					<span>then</span>
					<EntityField label={`${label}: event that follows`} leaf={leaf} set={set} name="seq_event" type="seq_event_type" />
				</>
			)}
			{recent.includes(kind) && (
				<div class="cohorts-parts">
					<span>{recentWords[kind as string]}</span>
					<Span label={`${label}: later window`} leaf={leaf} set={set} count="seq_time_value" unit="seq_time_interval" />
				</div>
			)}
			{!unfiltered.includes(kind) && (
				<PropertyFilters
					label="Filters of the event"
					types={eventFilterTypes}
					events={leaf.event_type === "events" && leaf.key ? [String(leaf.key)] : []}
					filters={listOf(leaf.event_filters).map(fieldsOf)}
					onFilters={(filters) => set({ event_filters: filters.length ? filters : undefined })}
				/>
			)}
		</>
	);
}

const recentWords: Record<string, string> = {
	stopped_performing_event: "but not in the last",
	restarted_performing_event: "and again in the last",
	performed_event_sequence: "within",
};

interface PartProps {
	leaf: Leaf;
	set: (changes: Leaf) => void;
	label: string;
}

function EntityField({ leaf, set, label, name, type }: PartProps & { name: string; type: string }) {
	const value = leaf[name];
	const action = leaf[type] === "actions";
	const chosen: Entity | null = !value ? null : action ? { action: Number(value), name: "" } : { event: String(value) };
	return (
		<EventPicker
			label={label}
			value={chosen}
			everything={false}
			onValue={(next) =>
				"action" in next ? set({ [name]: next.action, [type]: "actions" }) : set({ [name]: next.event ?? "", [type]: "events" })
			}
		/>
	);
}

function Whole({ leaf, set, label, name }: PartProps & { name: string }) {
	return (
		<NumberInput
			aria-label={label}
			class="cohorts-number"
			min={1}
			value={numberOf(Number(leaf[name]))}
			onValue={(n) => set({ [name]: n ?? 1 })}
		/>
	);
}

function Span({ leaf, set, label, count, unit }: PartProps & { count: string; unit: string }) {
	return (
		<>
			<Whole label={`${label}, number`} leaf={leaf} set={set} name={count} />
			<Select aria-label={`${label}, unit`} value={textOf(leaf[unit])} choices={intervals} onValue={(next) => set({ [unit]: next })} />
		</>
	);
}

/** The time in which the event occurred. */
function Window({ leaf, set, label, dates }: PartProps & { dates: boolean }) {
	const dated = dates && leaf.explicit_datetime !== undefined && leaf.explicit_datetime !== null;
	return (
		<div class="cohorts-parts">
			{dates ? (
				<Select
					aria-label={`${label}: time`}
					value={dated ? "since" : "last"}
					choices={[
						{ value: "last", label: "in the last" },
						{ value: "since", label: "since" },
					]}
					onValue={(next) =>
						next === "since"
							? set({ explicit_datetime: "-30d", time_value: undefined, time_interval: undefined })
							: set({ explicit_datetime: undefined, explicit_datetime_to: undefined, time_value: 30, time_interval: "day" })
					}
				/>
			) : (
				<span>in the last</span>
			)}
			{dated ? (
				<>
					<TextInput
						aria-label={`${label}: since`}
						value={textOf(leaf.explicit_datetime)}
						placeholder="2026-01-31 or -30d"
						onValue={(value) => set({ explicit_datetime: value })}
					/>
					<span>until</span>
					<TextInput
						aria-label={`${label}: until`}
						value={textOf(leaf.explicit_datetime_to)}
						placeholder="now"
						onValue={(value) => set({ explicit_datetime_to: value || undefined })}
					/>
				</>
			) : (
				<Span label={`${label}: window`} leaf={leaf} set={set} count="time_value" unit="time_interval" />
			)}
		</div>
	);
}

function Periods({ leaf, set, label }: PartProps) {
	return (
		<div class="cohorts-parts">
			<span>per period of</span>
			<Span label={`${label}: period`} leaf={leaf} set={set} count="time_value" unit="time_interval" />
			<span>in at least</span>
			<Whole label={`${label}: periods with it`} leaf={leaf} set={set} name="min_periods" />
			<span>of the last</span>
			<Whole label={`${label}: periods`} leaf={leaf} set={set} name="total_periods" />
		</div>
	);
}
