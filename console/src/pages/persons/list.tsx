import { useState } from "preact/hooks";
import { get, type Page } from "../../api/client";
import { stringify } from "../../api/json";
import { useResource, useSettled } from "../../api/use";
import type { Filter } from "../../data/events";
import { filled, PropertyFilters } from "../../data/filters";
import { useOffset } from "../../data/paged";
import type { Person } from "../../data/people";
import { PeopleTable } from "../../data/person";
import { Link, pageAddress } from "../../router";
import { Card, Empty, Field, Loaded, PageHead, TextInput } from "../../ui/basics";
import { counted } from "../../ui/format";
import { Pager } from "../../ui/table";

const limit = 50;
const people = ["person"] as const;

/** The people of the project. */
export default function PersonsPage() {
	const [search, setSearch] = useState("");
	const [filters, setFilters] = useState<Filter[]>([]);
	const properties = filled(filters);
	const wanted = useSettled(JSON.stringify({ search: search.trim(), properties: properties.length ? stringify(properties) : "" }));
	const [offset, setOffset] = useOffset(wanted);
	const found = useResource(
		(signal) => get<Page<Person>>("persons/", { ...JSON.parse(wanted), limit, offset, include_total: true }, signal),
		[wanted, offset],
	);
	return (
		<>
			<PageHead title="People" about={found.data && counted(found.data.count, "person", "people")}>
				<Link to={pageAddress("persons", "deletions")}>Deletions</Link>
			</PageHead>
			<div class="data-bar">
				<Field label="Search" hideLabel>
					{(id) => (
						<TextInput
							id={id}
							type="search"
							placeholder="Email, name, distinct ID or UUID"
							value={search}
							onValue={setSearch}
							maxLength={200}
						/>
					)}
				</Field>
			</div>
			<div class="stack">
				<PropertyFilters filters={filters} onFilters={setFilters} label="Properties" types={people} />
				<Card>
					<Loaded of={found} rows={8}>
						{({ results, next, count }) =>
							results.length === 0 && offset === 0 ? (
								<Empty title={search || properties.length ? "Nobody found" : "No people yet"}>
									{!search && properties.length === 0 && <p>People appear with their first events.</p>}
								</Empty>
							) : (
								<>
									<PeopleTable people={results} label="People" />
									<Pager offset={offset} limit={limit} count={count} more={next !== null} onOffset={setOffset} />
								</>
							)
						}
					</Loaded>
				</Card>
			</div>
		</>
	);
}
