import { Plus } from "lucide-preact";
import { Button, Segments } from "../ui/basics";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { FilterRow } from "./filter-row";
import {
	everyFilterType,
	type Filters,
	type FilterType,
	isAny,
	isGroup,
	isGrouped,
	membersOf,
	newFilter,
	type Property,
	withAny,
	withGroup,
	withMember,
	withMembers,
} from "./filters";
import { type Fields, fieldsOf } from "./json";
import { MistakeAt } from "./mistakes";
import { operatorsFor } from "./operators";
import { PropertyPicker } from "./property-picker";
import { propertyType } from "./suggest";

export type { Filters } from "./filters";

interface FilterGroupProps {
	/** What the filters are of, such as "Filters", for screen readers. */
	label: string;
	/** A list of filters, or a group of filters and groups. */
	value: Filters;
	onValue: (value: Filters) => void;
	/** The types that are offered. Default: all. */
	types?: readonly FilterType[];
	/** Whether filters can be put into groups of which any is enough. */
	groups?: boolean;
	/** The events whose properties and values are offered; all if empty. */
	events?: readonly string[];
	/** The place of the filters in the query, such as properties or series.0.properties, for mistakes. */
	at?: string;
}

/** Filters by properties: a list of which all have to hold, or groups with "all" and "any". */
export function FilterGroup({ label, value, onValue, types = everyFilterType, groups = false, events, at }: FilterGroupProps) {
	return <Group label={label} value={value} onValue={onValue} types={types} groups={groups} events={events} at={at} depth={0} />;
}

function Group({
	label,
	value,
	onValue,
	types,
	groups,
	events,
	at,
	depth,
}: FilterGroupProps & { types: readonly FilterType[]; depth: number }) {
	const members = membersOf(value);
	const grouped = isGrouped(value);
	const choosable = members.length > 1 && (groups || isGroup(value));
	const inside = isGroup(value) && at ? `${at}.values` : at;
	return (
		<fieldset class={depth > 0 ? "editor-group editor-group-inner" : "editor-group"}>
			<legend class="visually-hidden">{label}</legend>
			{choosable && (
				<Segments
					label={grouped ? "How groups are combined" : "How filters are combined"}
					value={isAny(value) ? "OR" : "AND"}
					choices={[
						{ value: "AND", label: grouped ? "All groups" : "All filters" },
						{ value: "OR", label: grouped ? "Any group" : "Any filter" },
					]}
					onValue={(any) => onValue(withAny(value, any === "OR"))}
				/>
			)}
			{members.map((member, i) => {
				const place = inside ? `${inside}.${i}` : undefined;
				return isGroup(member) ? (
					<Group
						key={i}
						label={`Group ${i + 1}`}
						value={member}
						onValue={(next) => onValue(withMember(value, i, next))}
						types={types}
						events={events}
						at={place}
						depth={depth + 1}
					/>
				) : (
					<FilterRow
						key={i}
						filter={fieldsOf(member)}
						onFilter={(next) => onValue(withMember(value, i, next))}
						onRemove={() => onValue(withMember(value, i, undefined))}
						types={types}
						events={events}
						at={place}
					/>
				);
			})}
			<div class="editor-adds">
				{!grouped && (
					<AddFilter
						label="Add filter"
						types={types}
						events={events}
						onAdd={(filter) => onValue(withMembers(value, [...members, filter]))}
					/>
				)}
				{groups && depth === 0 && members.length > 0 && (
					<AddFilter label="Add group" types={types} events={events} onAdd={(filter) => onValue(withGroup(value, filter))} />
				)}
			</div>
			<MistakeAt field={at} />
		</fieldset>
	);
}

/** A button that becomes a field for the property of a new filter. */
export function AddFilter({
	label,
	types,
	events,
	onAdd,
	open: opened = false,
	onClose,
}: {
	label: string;
	types: readonly FilterType[];
	events?: readonly string[];
	onAdd: (filter: Fields) => void;
	/** Whether the field is there at once. */
	open?: boolean;
	/** Called when the field is left without a choice. */
	onClose?: () => void;
}) {
	const [open, setOpen] = useState(opened);
	const latest = useRef(onAdd);
	latest.current = onAdd; // what is edited while a type is looked up stays
	const close = () => {
		setOpen(false);
		onClose?.();
	};
	const add = async (property: Property) => {
		const declared = await propertyType(property);
		latest.current(newFilter(property, operatorsFor(property.type, property.key, declared)[0]?.value ?? "exact"));
		close();
	};
	if (!open) {
		return (
			<Button small look="quiet" icon={<Plus size={14} />} onClick={() => setOpen(true)}>
				{label}
			</Button>
		);
	}
	return (
		<Focused class="editor-adding" onLeave={close}>
			<PropertyPicker label={`${label}: property`} value={null} types={types} events={events} onValue={add} />
		</Focused>
	);
}

/** A box whose first field gets the focus when it appears. It says when the focus leaves it. */
export function Focused({ children, onLeave, class: name }: { children: ComponentChildren; onLeave: () => void; class?: string }) {
	const box = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => box.current?.querySelector<HTMLElement>("input, select")?.focus(), []);
	return (
		<div
			ref={box}
			class={name}
			onFocusOut={(event) => {
				if (!event.currentTarget.contains(event.relatedTarget as Node | null)) onLeave();
			}}
		>
			{children}
		</div>
	);
}
