import { useState } from "preact/hooks";
import { get } from "../../api/client";
import { ask } from "../../api/query";
import { type Resource, useResource } from "../../api/use";
import { EditDefinition, Marks, Tags } from "../../data/definition";
import { type PropertyDefinition, typeName } from "../../data/definitions";
import { LoadedPage } from "../../data/page";
import { forgetTypes } from "../../editor/suggest";
import { place } from "../../router";
import { can } from "../../session";
import { Button, Card, Empty, Loaded, PageHead } from "../../ui/basics";
import { number, text } from "../../ui/format";
import { Table } from "../../ui/table";

/** One property: its type, where it occurs, and some of its values. */
export default function PropertyPage({ id }: { id: string }) {
	const found = useResource((signal) => get<PropertyDefinition>(`property_definitions/${encodeURIComponent(id)}/`, {}, signal), [id]);
	return (
		<LoadedPage of={found} title="Property">
			{(property) => <PropertyDetails property={property} of={found} />}
		</LoadedPage>
	);
}

const kinds: Record<string, string> = { event: "Property of events", person: "Property of people", group: "Property of groups" };

function PropertyDetails({ property, of }: { property: PropertyDefinition; of: Resource<PropertyDefinition> }) {
	const [editing, setEditing] = useState(false);
	const kind = new URLSearchParams(place.value.search).get("type") ?? "event";
	const changed = (saved: PropertyDefinition) => {
		forgetTypes();
		of.set(saved);
	};
	return (
		<>
			<PageHead
				title={
					<>
						{property.name} <Marks definition={property} />
					</>
				}
				about={`${kinds[kind] ?? "Property"}, type: ${typeName(property.property_type)}`}
			>
				{can("property_definition:write") && <Button onClick={() => setEditing(true)}>Edit</Button>}
			</PageHead>
			<div class="stack">
				{(property.description || property.tags.length > 0) && (
					<Card>
						<div class="stack">
							{property.description && <p class="data-lines">{property.description}</p>}
							<Tags tags={property.tags} />
						</div>
					</Card>
				)}
				<div class="columns">
					{kind === "event" && can("query:read") && (
						<>
							<Card title="Values of the last 7 days">
								<Values key={property.name} path="events/values/" name={property.name} />
							</Card>
							<Card title="Events of the last 30 days with it">
								<Occurrences name={property.name} />
							</Card>
						</>
					)}
					{kind === "person" && can("person:read") && (
						<Card title="Most frequent values">
							<Values key={property.name} path="persons/values/" name={property.name} />
						</Card>
					)}
				</div>
			</div>
			{editing && (
				<EditDefinition path="property_definitions/" definition={property} onChanged={changed} onClose={() => setEditing(false)} />
			)}
		</>
	);
}

function Values({ path, name }: { path: string; name: string }) {
	const found = useResource((signal) => get<{ name: unknown; count?: number }[]>(path, { key: name }, signal), [path, name]);
	return (
		<Loaded of={found}>
			{(values) =>
				values.length === 0 ? (
					<Empty title="No values" />
				) : (
					<Table
						label="Values"
						rows={values}
						keyOf={(value) => text(value.name)}
						columns={[
							{ name: "value", title: "Value", cell: (value) => <code>{text(value.name)}</code> },
							...(values.some((value) => value.count !== undefined)
								? [{ name: "count", title: "People", number: true, cell: (value: { count?: number }) => number(value.count ?? 0) }]
								: []),
						]}
					/>
				)
			}
		</Loaded>
	);
}

function Occurrences({ name }: { name: string }) {
	const found = useResource(
		async (signal) => {
			const query = {
				kind: "EventsQuery",
				select: ["event", "count()"],
				properties: [{ type: "event", key: name, operator: "is_set", value: "is_set" }],
				after: "-30d",
				orderBy: ["count() DESC"],
				limit: 100,
			};
			return (await ask<[string, number][]>(query, { signal })).data.results;
		},
		[name],
	);
	return (
		<Loaded of={found}>
			{(rows) =>
				rows.length === 0 ? (
					<Empty title="No events" />
				) : (
					<Table
						label="Events with the property"
						rows={rows}
						keyOf={([event]) => event}
						columns={[
							{ name: "event", title: "Event", cell: ([event]) => event },
							{ name: "count", title: "Events", number: true, cell: ([, count]) => number(count) },
						]}
					/>
				)
			}
		</Loaded>
	);
}
