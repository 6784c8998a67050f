import { useState } from "preact/hooks";
import { usePoll, useResource } from "../../api/use";
import { When } from "../../data/time";
import { Link, pageAddress } from "../../router";
import { Badge, Card, Empty, Loaded, PageHead } from "../../ui/basics";
import { number } from "../../ui/format";
import { type Column, Pager, Table } from "../../ui/table";
import { type Deletion, readDeletions, stateOf, whatOf } from "./progress";

const limit = 50;

/** Milliseconds between two looks while something is not erased yet. */
const interval = 10_000;

/** The people whose deletion was asked for, and how far it is. */
export default function DeletionsPage() {
	const [offset, setOffset] = useState(0);
	const found = useResource((signal) => readDeletions(limit, offset, signal), [offset]);
	usePoll(
		found,
		interval,
		found.data?.results.some((d) => d.status === "pending"),
	);
	return (
		<>
			<PageHead
				title="Deletions"
				about="Deleted data disappears from answers at once, and from the disk soon after an hour. A record with the UUID and the counts stays for 30 days."
			>
				<Link to={pageAddress("persons")}>All people</Link>
			</PageHead>
			<Card>
				<Loaded of={found} rows={6}>
					{({ results, next, count }) =>
						results.length === 0 && offset === 0 ? (
							<Empty title="Nobody was deleted">
								<p>A person can be deleted on their page, with the scope person:write.</p>
							</Empty>
						) : (
							<>
								<Table label="Deletions" columns={columns} rows={results} keyOf={(d) => d.id} />
								<Pager offset={offset} limit={limit} count={count} more={next !== null} onOffset={setOffset} />
							</>
						)
					}
				</Loaded>
			</Card>
		</>
	);
}

const columns: Column<Deletion>[] = [
	{ name: "person", title: "Person", cell: (d) => <code>{d.person_uuid}</code> },
	{ name: "what", title: "Deleted", cell: whatOf },
	{
		name: "state",
		title: "State",
		cell: (d) => {
			const { tone, words } = stateOf(d);
			return <Badge tone={tone}>{words}</Badge>;
		},
	},
	{ name: "asked", title: "Asked for", cell: (d) => <When time={d.created_at} relative /> },
	{
		name: "erased",
		title: "Erased",
		extra: true,
		cell: (d) => (d.delete_verified_at ? <When time={d.delete_verified_at} relative /> : "–"),
	},
	{ name: "events", title: "Events", number: true, extra: true, cell: (d) => (d.events_deleted ? number(d.event_count) : "–") },
];
