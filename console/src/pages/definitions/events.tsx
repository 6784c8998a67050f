import { useState } from "preact/hooks";
import { ask } from "../../api/query";
import { useResource, useSettled } from "../../api/use";
import { Marks, Tags } from "../../data/definition";
import { eventDefinitions } from "../../data/definitions";
import { quoted } from "../../data/hogql";
import { useOffset } from "../../data/paged";
import { When } from "../../data/time";
import { Link, pageAddress } from "../../router";
import { can } from "../../session";
import { Card, Empty, Field, Loaded, PageHead, TextInput } from "../../ui/basics";
import { counted, number } from "../../ui/format";
import { Pager, Table } from "../../ui/table";

const limit = 50;

/** The events that the project has seen. */
export default function EventsPage() {
	const [typed, setTyped] = useState("");
	const search = useSettled(typed.trim());
	const [offset, setOffset] = useOffset(search);
	const found = useResource((signal) => eventDefinitions({ search, limit, offset }, signal), [search, offset]);
	const names = found.data?.results.map((definition) => definition.name) ?? [];
	const page = JSON.stringify(names);
	const volumes = useResource(async (signal) => ({ page, counts: await volumesOf(names, signal) }), [page]);
	const counts = volumes.data?.page === page ? volumes.data.counts : undefined;
	return (
		<>
			<PageHead title="Events" about={found.data && counted(found.data.count, "event")} />
			<div class="data-bar">
				<Field label="Search events" hideLabel>
					{(id) => <TextInput id={id} type="search" placeholder="Search by name" value={typed} onValue={setTyped} maxLength={200} />}
				</Field>
			</div>
			<Card>
				<Loaded of={found} rows={8}>
					{({ results, next, count }) =>
						results.length === 0 && offset === 0 ? (
							<Empty title={search ? "No events match your search" : "No events yet"} />
						) : (
							<>
								<Table
									label="Events"
									rows={results}
									keyOf={(definition) => definition.id}
									columns={[
										{
											name: "name",
											title: "Event",
											cell: (definition) => (
												<>
													<Link to={pageAddress("data-management", "events", definition.id)}>{definition.name}</Link>{" "}
													<Marks definition={definition} />
													{definition.description && <p class="hint">{definition.description}</p>}
												</>
											),
										},
										{ name: "tags", title: "Tags", extra: true, cell: (definition) => <Tags tags={definition.tags} /> },
										{
											name: "volume",
											title: "30 days",
											number: true,
											cell: (definition) => (counts ? number(counts.get(definition.name) ?? 0) : "–"),
										},
										{ name: "first", title: "First seen", extra: true, cell: (definition) => <When time={definition.created_at} /> },
										{ name: "last", title: "Last seen", cell: (definition) => <When time={definition.last_seen_at} relative /> },
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

/** How often events occurred in the last 30 days. */
async function volumesOf(names: readonly string[], signal: AbortSignal): Promise<Map<string, number> | undefined> {
	if (names.length === 0 || !can("query:read")) return undefined;
	const { data } = await ask<[string, number][]>(
		{
			kind: "EventsQuery",
			select: ["event", "count()"],
			where: [`event in (${names.map(quoted).join(", ")})`],
			after: "-30d",
			limit: names.length,
		},
		{ signal },
	);
	return new Map(data.results);
}
