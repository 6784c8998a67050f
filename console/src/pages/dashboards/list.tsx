import { Pin, PinOff, Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { get, type Page, patch, post, remove } from "../../api/client";
import { useResource, useSettled } from "../../api/use";
import { type Details, DetailsDialog } from "../../data/details";
import { Tags } from "../../data/definition";
import { Link, navigate, pageAddress, place, withSearch } from "../../router";
import { can } from "../../session";
import { Button, Card, Empty, IconButton, Loaded, PageHead, Select, TextInput } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { ago } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { type Column, Pager, Table } from "../../ui/table";
import { type Dashboard, nameOf } from "./model";

const pageSize = 50;

type Shown = "" | "pinned";

export default function Dashboards() {
	const given = new URLSearchParams(place.value.search);
	const search = given.get("search") ?? "";
	const shown: Shown = given.get("shown") === "pinned" ? "pinned" : "";
	const offset = Number.parseInt(given.get("offset") ?? "0", 10) || 0;
	const wanted = useSettled(search.trim());
	const [creating, setCreating] = useState(false);
	const [deleting, setDeleting] = useState<Dashboard | null>(null);
	const list = useResource(
		(signal) =>
			get<Page<Dashboard>>("dashboards/", { search: wanted, pinned: shown === "pinned" || null, limit: pageSize, offset }, signal),
		[wanted, shown, offset],
	);
	const go = (changes: Record<string, string>) => {
		const fields = { search, shown, ...changes };
		navigate(withSearch(pageAddress("dashboard"), fields), { replace: !("offset" in changes) });
	};
	const pin = (d: Dashboard) => attempt(() => patch(`dashboards/${d.id}/`, { pinned: !d.pinned }).then(list.reload));
	const writes = can("dashboard:write");
	const columns: Column<Dashboard>[] = [
		{
			name: "name",
			title: "Name",
			cell: (d) => (
				<>
					<Link to={pageAddress("dashboard", d.id)}>{nameOf(d)}</Link>
					{d.description && <p class="hint">{d.description}</p>}
				</>
			),
		},
		{ name: "tags", title: "Tags", extra: true, cell: (d) => <Tags tags={d.tags ?? []} /> },
		{ name: "by", title: "Created by", extra: true, cell: (d) => d.created_by?.first_name ?? "" },
		{ name: "created", title: "Created", extra: true, cell: (d) => <time dateTime={d.created_at ?? ""}>{ago(d.created_at)}</time> },
		{
			name: "actions",
			title: <span class="visually-hidden">Actions</span>,
			cell: (d) => (
				<div class="row-actions">
					<IconButton label={d.pinned ? "Unpin" : "Pin"} small disabled={!writes} aria-pressed={d.pinned} onClick={() => pin(d)}>
						{d.pinned ? <PinOff size={14} /> : <Pin size={14} />}
					</IconButton>
					{writes && (
						<Menu label={`More for ${nameOf(d)}`} icon items={[{ label: "Delete", danger: true, onSelect: () => setDeleting(d) }]}>
							⋯
						</Menu>
					)}
				</div>
			),
		},
	];
	return (
		<>
			<PageHead title="Dashboards">
				{writes && (
					<Button look="primary" icon={<Plus size={14} aria-hidden="true" />} onClick={() => setCreating(true)}>
						New dashboard
					</Button>
				)}
			</PageHead>
			<Card>
				<div class="list-filters">
					<TextInput
						type="search"
						aria-label="Search"
						placeholder="Search in names, descriptions and tags"
						value={search}
						onValue={(value) => go({ search: value })}
					/>
					<Select
						aria-label="Which are shown"
						value={shown}
						choices={[
							{ value: "", label: "All" },
							{ value: "pinned", label: "Pinned" },
						]}
						onValue={(value) => go({ shown: value })}
					/>
				</div>
				<Loaded of={list} rows={6}>
					{(page) => {
						if (page.results.length === 0 && offset === 0)
							return <Empty title={wanted || shown === "pinned" ? "No matching dashboards" : "No dashboards yet"} />;
						return (
							<>
								<Table label="Dashboards" columns={columns} rows={page.results} keyOf={(d) => d.id} />
								<Pager
									offset={offset}
									limit={pageSize}
									count={page.count}
									more={page.next !== null}
									onOffset={(o) => go({ offset: o ? `${o}` : "" })}
								/>
							</>
						);
					}}
				</Loaded>
			</Card>
			{creating && <NewDashboard onClose={() => setCreating(false)} />}
			{deleting && <DeleteDashboard dashboard={deleting} onClose={() => setDeleting(null)} onDeleted={list.reload} />}
		</>
	);
}

function NewDashboard({ onClose }: { onClose: () => void }) {
	const save = async (details: Details) => {
		const made = await post<Dashboard>("dashboards/", details);
		navigate(pageAddress("dashboard", made.id));
	};
	return <DetailsDialog title="New dashboard" action="Create" onSave={save} onClose={onClose} />;
}

/** Asks before a dashboard is deleted. */
export function DeleteDashboard({ dashboard, onClose, onDeleted }: { dashboard: Dashboard; onClose: () => void; onDeleted: () => void }) {
	const work = async () => {
		await remove(`dashboards/${dashboard.id}/`);
		onDeleted();
	};
	return (
		<FormDialog title={`Delete ${nameOf(dashboard)}?`} action="Delete" danger onSubmit={work} onClose={onClose}>
			<p>Its insights stay.</p>
		</FormDialog>
	);
}
