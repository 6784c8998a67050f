import { Link, pageAddress } from "../router";
import { Badge } from "../ui/basics";
import { text } from "../ui/format";
import { type Column, Table } from "../ui/table";
import { nameOf, type Person } from "./people";
import { When } from "./time";

/** A table of people. `more` are columns of the page that shows it. */
export function PeopleTable({ people, label, more = [] }: { people: readonly Person[]; label: string; more?: Column<Person>[] }) {
	const columns: Column<Person>[] = [
		{
			name: "person",
			title: "Person",
			cell: (person) => (
				<>
					<Link to={pageAddress("person", person.uuid)}>{nameOf(person)}</Link>{" "}
					{person.is_identified && <Badge tone="good">Identified</Badge>}
				</>
			),
		},
		{ name: "email", title: "Email", extra: true, cell: (person) => text(person.properties.email) },
		{ name: "ids", title: "Distinct IDs", extra: true, cell: (person) => <DistinctIDs ids={person.distinct_ids} /> },
		{ name: "created", title: "First seen", cell: (person) => <When time={person.created_at} /> },
		...more,
	];
	return <Table label={label} columns={columns} rows={people} keyOf={(person) => person.uuid} />;
}

function DistinctIDs({ ids }: { ids: readonly string[] }) {
	const [first, ...others] = ids;
	return (
		<span title={ids.join("\n")}>
			<code>{first}</code>
			{others.length > 0 && ` and ${others.length} more`}
		</span>
	);
}
