import { get } from "../api/client";
import { useResource } from "../api/use";
import { Link, pageAddress } from "../router";
import { Empty, Loaded } from "../ui/basics";
import { Table } from "../ui/table";
import { When } from "./time";

/** Something that uses an action or a cohort: docs/actions.md, "What uses an action". */
export interface Reference {
	type: string;
	id: number | string | null;
	/** Null for a key that may not read it. */
	name: string | null;
	url: string | null;
	created_at: string | null;
	versions?: number[];
}

const kinds: Record<string, string> = {
	insight: "Insight",
	dashboard: "Dashboard",
	endpoint: "Endpoint",
	cohort: "Cohort",
	action: "Action",
	test_accounts: "Test accounts",
};

/** The page of what uses something; null where it has none. */
function pageOf(reference: Reference): string | null {
	if (reference.name === null || reference.id === null) return null;
	switch (reference.type) {
		case "insight":
			return pageAddress("insights", reference.id);
		case "dashboard":
			return pageAddress("dashboard", reference.id);
		case "endpoint":
			return pageAddress("endpoints", reference.name);
		case "cohort":
			return pageAddress("cohorts", reference.id);
		case "action":
			return pageAddress("data-management", "actions", reference.id);
	}
	return null;
}

/** A list of what uses something. */
export function References({ references }: { references: readonly Reference[] }) {
	if (references.length === 0) return <Empty title="Nothing uses it" />;
	return (
		<Table
			label="Used by"
			rows={references}
			keyOf={(reference, i) => `${reference.type}${reference.id ?? i}`}
			columns={[
				{ name: "type", title: "Kind", cell: (reference) => kinds[reference.type] ?? reference.type },
				{ name: "name", title: "Name", cell: (reference) => <Named reference={reference} /> },
				{ name: "created", title: "Created", extra: true, cell: (reference) => <When time={reference.created_at} relative /> },
			]}
		/>
	);
}

function Named({ reference }: { reference: Reference }) {
	const page = pageOf(reference);
	const versions = reference.versions?.length ? ` (version ${reference.versions.join(", ")})` : "";
	if (reference.name === null && reference.type !== "test_accounts") return <span class="data-none">Your key may not see it</span>;
	const name = reference.name || `${kinds[reference.type] ?? reference.type} ${reference.id ?? ""}`;
	return page ? (
		<>
			<Link to={page}>{name}</Link>
			{versions}
		</>
	) : (
		<>{name}</>
	);
}

/** What uses an action, as the server finds it. */
export function ReferencesOf({ path }: { path: string }) {
	const found = useResource((signal) => get<Reference[]>(path, {}, signal), [path]);
	return <Loaded of={found}>{(references) => <References references={references} />}</Loaded>;
}
