import { Plus, Star } from "lucide-preact";
import { useState } from "preact/hooks";
import { get, type Page, patch } from "../../api/client";
import { useResource, useSettled } from "../../api/use";
import { Tags } from "../../data/definition";
import { type Insight, kindName, titleOf } from "../../insights/model";
import { Link, navigate, pageAddress, place, withSearch } from "../../router";
import { can } from "../../session";
import { Card, Checkbox, Empty, IconButton, Loaded, PageHead, Select, TextInput } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { ago } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { type Column, Pager, Table } from "../../ui/table";
import { deleteInsight } from "./save";

const pageSize = 50;

const kinds = [
	{ value: "", label: "All kinds" },
	{ value: "TRENDS", label: "Trends" },
	{ value: "FUNNELS", label: "Funnels" },
	{ value: "RETENTION", label: "Retention" },
	{ value: "PATHS", label: "Paths" },
	{ value: "STICKINESS", label: "Stickiness" },
	{ value: "LIFECYCLE", label: "Lifecycle" },
	{ value: "SQL", label: "SQL" },
	{ value: "JSON", label: "Others" },
];

const orders = [
	{ value: "-last_modified_at", label: "Last changed" },
	{ value: "-last_viewed_at", label: "Last viewed" },
	{ value: "-created_at", label: "Newest" },
	{ value: "created_at", label: "Oldest" },
	{ value: "name", label: "Name" },
];

export default function Insights() {
	const given = new URLSearchParams(place.value.search);
	const search = given.get("search") ?? "";
	const wanted = useSettled(search.trim());
	const kind = given.get("insight") ?? "";
	const order = given.get("order") ?? "";
	const favorites = given.get("favorited") === "true";
	const offset = Number.parseInt(given.get("offset") ?? "0", 10) || 0;
	const [deleting, setDeleting] = useState<Insight | null>(null);
	const list = useResource(
		(signal) =>
			get<Page<Insight>>(
				"insights/",
				{
					basic: true,
					search: wanted,
					insight: kind,
					// Without an order what is searched for comes with the best first.
					order: order || (wanted ? "" : "-last_modified_at"),
					favorited: favorites || null,
					limit: pageSize,
					offset,
				},
				signal,
			),
		[wanted, kind, order, favorites, offset],
	);
	const go = (changes: Record<string, string>) => {
		const fields = { search, insight: kind, order, favorited: favorites ? "true" : "", ...changes };
		navigate(withSearch(pageAddress("insights"), fields), { replace: !("offset" in changes) });
	};
	const star = (i: Insight) => attempt(() => patch(`insights/${i.id}/`, { favorited: !i.favorited }).then(list.reload));
	const writes = can("insight:write");
	const columns: Column<Insight>[] = [
		{
			name: "star",
			title: <span class="visually-hidden">Favorite</span>,
			cell: (i) => (
				<IconButton
					label={`${i.favorited ? "Remove from" : "Add to"} favorites: ${titleOf(i)}`}
					small
					aria-pressed={i.favorited ?? false}
					disabled={!writes}
					onClick={() => star(i)}
				>
					<Star size={14} class={i.favorited ? "starred" : undefined} />
				</IconButton>
			),
		},
		{
			name: "name",
			title: "Name",
			cell: (i) => (
				<>
					<Link to={pageAddress("insights", i.short_id)}>{titleOf(i)}</Link>
					{i.description && <p class="hint">{i.description}</p>}
				</>
			),
		},
		{ name: "kind", title: "Kind", cell: (i) => <span class="insight-kind">{kindName(i.query)}</span> },
		{ name: "tags", title: "Tags", extra: true, cell: (i) => <Tags tags={i.tags ?? []} /> },
		{ name: "by", title: "Created by", extra: true, cell: (i) => i.created_by?.first_name ?? "" },
		{
			name: "changed",
			title: "Changed",
			extra: true,
			cell: (i) => <time dateTime={i.last_modified_at ?? ""}>{ago(i.last_modified_at)}</time>,
		},
		{
			name: "actions",
			title: <span class="visually-hidden">Actions</span>,
			cell: (i) =>
				writes && (
					<Menu label={`More for ${titleOf(i)}`} icon items={[{ label: "Delete", danger: true, onSelect: () => setDeleting(i) }]}>
						⋯
					</Menu>
				),
		},
	];
	const filtered = wanted || kind || favorites;
	return (
		<>
			<PageHead title="Insights">
				{can("query:read") && (
					<Link class="button button-primary" to={pageAddress("insights", "new")}>
						<Plus size={14} aria-hidden="true" /> New insight
					</Link>
				)}
			</PageHead>
			<Card>
				<div class="list-filters">
					<TextInput
						type="search"
						aria-label="Search"
						placeholder="Search in names, descriptions and tags"
						maxLength={200}
						value={search}
						onValue={(value) => go({ search: value })}
					/>
					<Select aria-label="Kind" value={kind} choices={kinds} onValue={(value) => go({ insight: value })} />
					<Select
						aria-label="Order"
						value={order}
						choices={[{ value: "", label: wanted ? "Best match" : "Last changed" }, ...orders.slice(wanted ? 0 : 1)]}
						onValue={(value) => go({ order: value })}
					/>
					<Checkbox label="Favorites" checked={favorites} onValue={(on) => go({ favorited: on ? "true" : "" })} />
				</div>
				<Loaded of={list} rows={8}>
					{(page) =>
						page.results.length === 0 && offset === 0 ? (
							<Empty title={filtered ? "No matching insights" : "No insights yet"} />
						) : (
							<>
								<Table label="Insights" columns={columns} rows={page.results} keyOf={(i) => i.id} />
								<Pager
									offset={offset}
									limit={pageSize}
									count={page.count}
									more={page.next !== null}
									onOffset={(o) => go({ offset: o ? `${o}` : "" })}
								/>
							</>
						)
					}
				</Loaded>
			</Card>
			{deleting && (
				<FormDialog
					title={`Delete ${titleOf(deleting)}?`}
					action="Delete"
					danger
					onSubmit={() => deleteInsight(deleting).then(list.reload)}
					onClose={() => setDeleting(null)}
				>
					<p>It is taken off its dashboards, too.</p>
				</FormDialog>
			)}
		</>
	);
}
