import { useState } from "preact/hooks";
import { get, type Page } from "../../api/client";
import { useResource, useSettled } from "../../api/use";
import { Tags } from "../../data/definition";
import { useOffset } from "../../data/paged";
import { When } from "../../data/time";
import { Link, pageAddress } from "../../router";
import { can } from "../../session";
import { Card, Empty, Field, Loaded, PageHead, TextInput } from "../../ui/basics";
import { number } from "../../ui/format";
import { Pager, Table } from "../../ui/table";
import { type Action, describe } from "./steps";

const limit = 50;

/** The actions of the project. */
export default function ActionsPage() {
	const [typed, setTyped] = useState("");
	const search = useSettled(typed.trim());
	const [offset, setOffset] = useOffset(search);
	const found = useResource((signal) => get<Page<Action>>("actions/", { search, limit, offset }, signal), [search, offset]);
	return (
		<>
			<PageHead title="Actions" about="Names for things that people do: events, clicks and page visits.">
				{can("action:write") && (
					<Link class="button button-primary" to={pageAddress("data-management", "actions", "new")}>
						New action
					</Link>
				)}
			</PageHead>
			<div class="data-bar">
				<Field label="Search actions" hideLabel>
					{(id) => <TextInput id={id} type="search" placeholder="Search by name" value={typed} onValue={setTyped} maxLength={200} />}
				</Field>
			</div>
			<Card>
				<Loaded of={found}>
					{({ results, next, count }) =>
						results.length === 0 && offset === 0 ? (
							<Empty title={search ? "No actions match your search" : "No actions yet"} />
						) : (
							<>
								<Table
									label="Actions"
									rows={results}
									keyOf={(action) => action.id}
									columns={[
										{
											name: "name",
											title: "Action",
											cell: (action) => (
												<>
													<Link to={pageAddress("data-management", "actions", action.id)}>{action.name || `Action ${action.id}`}</Link>
													{action.description && <p class="hint">{action.description}</p>}
												</>
											),
										},
										{ name: "steps", title: "Matches", extra: true, cell: (action) => <Matches action={action} /> },
										{ name: "tags", title: "Tags", extra: true, cell: (action) => <Tags tags={action.tags} /> },
										{ name: "used", title: "Used by", number: true, cell: (action) => number(action.reference_count ?? 0) },
										{ name: "created", title: "Created", cell: (action) => <When time={action.created_at} relative /> },
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

function Matches({ action }: { action: Action }) {
	if (action.steps.length === 0) return <>Every event</>;
	return (
		<ul class="data-list">
			{action.steps.slice(0, 3).map((step, i) => (
				<li key={i}>{describe(step)}</li>
			))}
			{action.steps.length > 3 && <li class="hint">and {action.steps.length - 3} more</li>}
		</ul>
	);
}
