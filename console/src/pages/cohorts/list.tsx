import { useState } from "preact/hooks";
import { get, type Page } from "../../api/client";
import { usePoll, useResource, useSettled } from "../../api/use";
import { useOffset } from "../../data/paged";
import { When } from "../../data/time";
import { Link, pageAddress } from "../../router";
import { can } from "../../session";
import { Card, Empty, Field, Loaded, PageHead, Select, TextInput } from "../../ui/basics";
import { number } from "../../ui/format";
import { Pager, Table } from "../../ui/table";
import { type Cohort, nameOf } from "./record";
import { State } from "./state";

const limit = 50;

const types = [
	{ value: "", label: "All cohorts" },
	{ value: "dynamic", label: "Dynamic" },
	{ value: "static", label: "Static" },
];

/** The cohorts of the project. */
export default function CohortsPage() {
	const [typed, setTyped] = useState("");
	const [type, setType] = useState("");
	const search = useSettled(typed.trim());
	const [offset, setOffset] = useOffset(`${type} ${search}`);
	const found = useResource(
		(signal) => get<Page<Cohort>>("cohorts/", { search, type, basic: true, limit, offset }, signal),
		[search, type, offset],
	);
	const calculating = found.data?.results.some((cohort) => cohort.is_calculating);
	usePoll(found, 2000, calculating);
	return (
		<>
			<PageHead title="Cohorts" about="Named sets of people, for filters and breakdowns.">
				{can("cohort:write") && (
					<Link class="button button-primary" to={pageAddress("cohorts", "new")}>
						New cohort
					</Link>
				)}
			</PageHead>
			<div class="data-bar">
				<Field label="Search cohorts" hideLabel>
					{(id) => <TextInput id={id} type="search" placeholder="Search by name" value={typed} onValue={setTyped} maxLength={200} />}
				</Field>
				<Field label="Kind" hideLabel>
					{(id) => <Select id={id} value={type} choices={types} onValue={setType} />}
				</Field>
			</div>
			<Card>
				<Loaded of={found}>
					{({ results, next, count }) =>
						results.length === 0 && offset === 0 ? (
							<Empty title={search || type ? "No matching cohorts" : "No cohorts yet"} />
						) : (
							<>
								<Table
									label="Cohorts"
									rows={results}
									keyOf={(cohort) => cohort.id}
									columns={[
										{
											name: "name",
											title: "Cohort",
											cell: (cohort) => (
												<>
													<Link to={pageAddress("cohorts", cohort.id)}>{nameOf(cohort)}</Link>
													{cohort.description && <p class="hint">{cohort.description}</p>}
												</>
											),
										},
										{
											name: "count",
											title: "People",
											number: true,
											cell: (cohort) => (cohort.count === null ? "–" : number(cohort.count)),
										},
										{ name: "state", title: "Calculated", cell: (cohort) => <State cohort={cohort} /> },
										{ name: "created", title: "Created", extra: true, cell: (cohort) => <When time={cohort.created_at} relative /> },
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
