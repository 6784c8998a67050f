import { useState } from "preact/hooks";
import { get } from "../../api/client";
import { useResource, useSettled } from "../../api/use";
import { Marks, Tags } from "../../data/definition";
import { type PropertyKind, propertyDefinitions, typeName } from "../../data/definitions";
import { useOffset } from "../../data/paged";
import { type GroupType, groupName } from "../../editor/suggest";
import { Link, navigate, pageAddress, place } from "../../router";
import { can } from "../../session";
import { Card, Empty, Field, Loaded, PageHead, Select, Tabs, TextInput } from "../../ui/basics";
import { Pager, Table } from "../../ui/table";

const kinds: { value: PropertyKind; label: string }[] = [
	{ value: "event", label: "Events" },
	{ value: "person", label: "People" },
	{ value: "group", label: "Groups" },
];

const limit = 50;

/** The properties that the project has seen. */
export default function PropertiesPage() {
	const kind = kindOf(new URLSearchParams(place.value.search).get("type"));
	const groups = useResource(
		async (signal) => (kind === "group" && can("group:read") ? await get<GroupType[]>("groups_types/", {}, signal) : []),
		[kind],
	);
	return (
		<>
			<PageHead title="Properties" />
			<Tabs
				label="What the properties are of"
				value={kind}
				choices={kinds}
				onValue={(next) => navigate(`${pageAddress("data-management", "properties")}?type=${next}`, { replace: true })}
			>
				{kind !== "group" ? (
					<PropertyList key={kind} kind={kind} />
				) : (
					<Loaded of={groups}>{(types) => (types.length === 0 ? <Empty title="No groups" /> : <GroupProperties types={types} />)}</Loaded>
				)}
			</Tabs>
		</>
	);
}

function kindOf(text: string | null): PropertyKind {
	return text === "person" || text === "group" ? text : "event";
}

function GroupProperties({ types }: { types: readonly GroupType[] }) {
	const [index, setIndex] = useState(String(types[0]?.group_type_index ?? 0));
	return (
		<>
			<div class="data-bar">
				<Field label="Group type">
					{(id) => (
						<Select
							id={id}
							value={index}
							choices={types.map((type) => ({ value: String(type.group_type_index), label: groupName(type) }))}
							onValue={setIndex}
						/>
					)}
				</Field>
			</div>
			<PropertyList key={index} kind="group" group={Number(index)} />
		</>
	);
}

function PropertyList({ kind, group }: { kind: PropertyKind; group?: number }) {
	const [typed, setTyped] = useState("");
	const search = useSettled(typed.trim());
	const [offset, setOffset] = useOffset(search);
	const found = useResource((signal) => propertyDefinitions({ type: kind, group, search, limit, offset }, signal), [search, offset]);
	const suffix = group === undefined ? `?type=${kind}` : `?type=${kind}&group=${group}`;
	return (
		<>
			<div class="data-bar">
				<Field label="Search properties" hideLabel>
					{(id) => <TextInput id={id} type="search" placeholder="Search by name" value={typed} onValue={setTyped} maxLength={200} />}
				</Field>
			</div>
			<Card>
				<Loaded of={found} rows={8}>
					{({ results, next, count }) =>
						results.length === 0 && offset === 0 ? (
							<Empty title={search ? "No properties match your search" : "No properties yet"} />
						) : (
							<>
								<Table
									label="Properties"
									rows={results}
									keyOf={(property) => property.id}
									columns={[
										{
											name: "name",
											title: "Property",
											cell: (property) => (
												<>
													<Link to={pageAddress("data-management", "properties", property.id) + suffix}>{property.name}</Link>{" "}
													<Marks definition={property} />
													{property.description && <p class="hint">{property.description}</p>}
												</>
											),
										},
										{ name: "type", title: "Type", cell: (property) => typeName(property.property_type) },
										{ name: "tags", title: "Tags", extra: true, cell: (property) => <Tags tags={property.tags} /> },
									]}
								/>
								<Pager offset={offset} limit={limit} count={count} more={next !== null} onOffset={setOffset} />
							</>
						)
					}
				</Loaded>
			</Card>
		</>
	);
}
