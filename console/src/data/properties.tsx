import { useState } from "preact/hooks";
import { stringify } from "../api/json";
import { TextInput } from "../ui/basics";
import { text } from "../ui/format";
import { type Column, Table } from "../ui/table";
import { sortProperties, typeOf } from "./value";

/** From how many properties on there is a field that searches them. */
const many = 8;

type Property = [name: string, value: unknown];

/** The properties of an event, a person or a group, with the types of their values. `more` are columns of the page that shows it. */
export function PropertyTable({
	properties,
	label,
	more = [],
}: {
	properties: Record<string, unknown>;
	label: string;
	more?: Column<Property>[];
}) {
	const [search, setSearch] = useState("");
	const shown = sortProperties(properties, search);
	const count = Object.keys(properties).length;
	if (count === 0) return <p class="hint">No properties.</p>;
	return (
		<div class="data-properties">
			{count >= many && (
				<TextInput
					type="search"
					aria-label={`Search ${label.toLowerCase()}`}
					placeholder="Search properties"
					value={search}
					onValue={setSearch}
				/>
			)}
			{shown.length === 0 ? (
				<p class="hint">No property has “{search}” in its name or value.</p>
			) : (
				<Table
					label={label}
					rows={shown}
					keyOf={([name]) => name}
					columns={[
						{ name: "name", title: "Property", cell: ([name]) => <code>{name}</code> },
						{ name: "value", title: "Value", cell: ([, value]) => <Value value={value} /> },
						{ name: "type", title: "Type", extra: true, cell: ([, value]) => <span class="data-type">{typeOf(value)}</span> },
						...more,
					]}
				/>
			)}
		</div>
	);
}

/** A value of a property. Lists and objects are shown as JSON. */
export function Value({ value }: { value: unknown }) {
	const type = typeOf(value);
	if (type === "none") return <span class="data-none">none</span>;
	if (value === "") return <span class="data-none">empty text</span>;
	if (type === "list" || type === "object") return <pre class="data-json">{stringify(value, 2)}</pre>;
	return <span class={`data-value data-${type}`}>{text(value)}</span>;
}
