import { useState } from "preact/hooks";
import { get, type Page as PageOf, remove } from "../../api/client";
import { useResource, useSettled } from "../../api/use";
import { Link, navigate, pageAddress, place } from "../../router";
import { kindName } from "../../insights/model";
import { can } from "../../session";
import { Badge, Button, Card, Empty, Field, Loaded, PageHead, Select, TextInput } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { ago, duration, number, percent } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { SparkBars } from "../../ui/sparkbars";
import { type Column, Pager, Table } from "../../ui/table";
import { changeEndpoint, type Endpoint, pathOf, readEndpoint, type Span, spans, type Usage } from "./api";
import { Create } from "./create";

const pageSize = 25;

const orders = [
	{ value: "", label: "Newest first" },
	{ value: "name", label: "By name" },
	{ value: "-calls", label: "Most calls" },
	{ value: "-errors", label: "Most errors" },
	{ value: "-p95_ms", label: "Slowest" },
	{ value: "-last_executed_at", label: "Last run" },
] as const;

type Order = (typeof orders)[number]["value"];

interface Row {
	endpoint: Endpoint;
	usage?: Usage;
}

/** A page of endpoints with their numbers. In an order of numbers, these come first, and the records after them. */
async function readPage(search: string, order: Order, offset: number, signal: AbortSignal): Promise<{ count: number; rows: Row[] }> {
	const page = { search, limit: pageSize, offset };
	if (!order) {
		const { count, results } = await get<PageOf<Endpoint>>("endpoints/", page, signal);
		const names = results.map((e) => e.name).join(",");
		const usage = names ? (await get<PageOf<Usage>>("endpoint_usage/", { names, limit: pageSize }, signal)).results : [];
		return { count, rows: results.map((endpoint) => ({ endpoint, usage: usage.find((u) => u.name === endpoint.name) })) };
	}
	const { count, results } = await get<PageOf<Usage>>("endpoint_usage/", { ...page, ordering: order }, signal);
	const rows = await Promise.all(results.map(async (usage) => ({ endpoint: await readEndpoint(usage.name, signal), usage })));
	return { count, rows };
}

/** The project's endpoints. */
export default function Page() {
	const [search, setSearch] = useState("");
	const [order, setOrder] = useState<Order>("");
	const [span, setSpan] = useState<Span>("day");
	const [offset, setOffset] = useState(0);
	const [deleting, setDeleting] = useState<Endpoint | null>(null);
	const creating = new URLSearchParams(place.value.search).has("new");
	const settled = useSettled(search.trim());
	const page = useResource((signal) => readPage(settled, order, offset, signal), [settled, order, offset]);
	const open = (creating: boolean) => navigate(`${pageAddress("endpoints")}${creating ? "?new" : ""}`);
	const leave = () => {
		if (place.value.path === pageAddress("endpoints")) open(false); // else it was created, and its page is open
	};
	return (
		<>
			<PageHead title="Endpoints" about="Named queries with versions that your products call. Their answers are cached.">
				<Button look="primary" disabled={!can("endpoint:write")} onClick={() => open(true)}>
					New endpoint
				</Button>
			</PageHead>
			<div class="endpoints-filters">
				<Field label="Search" hideLabel>
					{(id) => (
						<TextInput
							id={id}
							type="search"
							placeholder="Search names and descriptions"
							value={search}
							onValue={(text) => {
								setSearch(text);
								setOffset(0);
							}}
						/>
					)}
				</Field>
				<Field label="Order" hideLabel>
					{(id) => (
						<Select
							id={id}
							value={order}
							choices={orders}
							onValue={(wanted) => {
								setOrder(wanted);
								setOffset(0);
							}}
						/>
					)}
				</Field>
				<Field label="Numbers of" hideLabel>
					{(id) => <Select id={id} value={span} choices={spans} onValue={setSpan} />}
				</Field>
			</div>
			<Loaded of={page} rows={8}>
				{({ count, rows }) =>
					rows.length === 0 && offset === 0 ? (
						<Nothing searched={settled !== ""} />
					) : (
						<Card>
							<Table
								label="Endpoints"
								columns={columns(span, page.reload, setDeleting)}
								rows={rows}
								keyOf={(row) => row.endpoint.name}
								onRow={(row) => navigate(pageAddress("endpoints", row.endpoint.name))}
							/>
							<Pager offset={offset} limit={pageSize} count={count} more={offset + pageSize < count} onOffset={setOffset} />
						</Card>
					)
				}
			</Loaded>
			{creating && <Create onClose={leave} onCreated={(name) => navigate(pageAddress("endpoints", name))} />}
			{deleting && <DeleteEndpoint endpoint={deleting} onClose={() => setDeleting(null)} onDeleted={page.reload} />}
		</>
	);
}

function Nothing({ searched }: { searched: boolean }) {
	if (searched) return <Empty title="No endpoint matches">Search for a part of a name or a description.</Empty>;
	return <Empty title="No endpoints yet">Publish a query under a name, and call it with a key.</Empty>;
}

function columns(span: Span, reload: () => void, onDelete: (endpoint: Endpoint) => void): Column<Row>[] {
	const figure = (name: string, title: string, value: (row: Row) => string): Column<Row> => ({
		name,
		title,
		number: true,
		extra: true,
		cell: value,
	});
	return [
		{
			name: "name",
			title: "Name",
			cell: ({ endpoint }) => (
				<>
					<Link to={pageAddress("endpoints", endpoint.name)}>{endpoint.name}</Link>
					{endpoint.description && <p class="hint endpoints-about">{endpoint.description}</p>}
				</>
			),
		},
		{ name: "state", title: "State", cell: ({ endpoint }) => <State endpoint={endpoint} /> },
		{ name: "kind", title: "Kind", extra: true, cell: ({ endpoint }) => <Badge>{kindName(endpoint.query)}</Badge> },
		{ name: "version", title: "Version", number: true, extra: true, cell: ({ endpoint }) => `v${endpoint.current_version}` },
		{
			name: "runs",
			title: span === "hour" ? "Calls in the last hour" : "Calls in the last day",
			extra: true,
			cell: ({ usage }) => usage && <Calls usage={usage} span={span} />,
		},
		figure("hits", "From cache", ({ usage }) => share(usage?.[span].cache_hit_ratio)),
		figure("p95", "p95", ({ usage }) => milliseconds(usage?.[span].p95_ms)),
		figure("errors", "Errors", ({ usage }) => (usage ? number(usage[span].errors) : "")),
		figure("last", "Last run", ({ endpoint }) => ago(endpoint.last_executed_at)),
		{
			name: "menu",
			title: <span class="visually-hidden">Actions</span>,
			cell: ({ endpoint }) => can("endpoint:write") && <RowMenu endpoint={endpoint} reload={reload} onDelete={onDelete} />,
		},
	];
}

export const share = (ratio: number | null | undefined) => (ratio === null || ratio === undefined ? "–" : percent(ratio));
export const milliseconds = (value: number | null | undefined) => (value === null || value === undefined ? "–" : duration(value / 1000));

export function Calls({ usage, span }: { usage: Usage; span: Span }) {
	const window = usage[span];
	const { series } = window;
	return (
		<div class="endpoints-calls">
			<span class="endpoints-count">{number(window.calls)}</span>
			{series && (
				<SparkBars
					values={series.calls}
					bad={series.errors}
					label={`${number(window.calls)} calls in the last ${span}, ${number(window.errors)} with an error`}
				/>
			)}
		</div>
	);
}

/** Whether an endpoint can be run, and how its rows are kept. */
export function State({ endpoint }: { endpoint: Endpoint }) {
	return (
		<span class="endpoints-badges">
			<Badge tone={endpoint.is_active ? "good" : "warn"}>{endpoint.is_active ? "Active" : "Inactive"}</Badge>
			{endpoint.is_materialized && <Badge tone="accent">Materialized</Badge>}
			{endpoint.deprecated_at && <Badge tone="warn">Deprecated</Badge>}
		</span>
	);
}

function RowMenu({ endpoint, reload, onDelete }: { endpoint: Endpoint; reload: () => void; onDelete: (endpoint: Endpoint) => void }) {
	const setActive = async (active: boolean) => {
		const done = active ? `${endpoint.name} can be run again` : `${endpoint.name} cannot be run any more`;
		if (await attempt(() => changeEndpoint(endpoint.name, { is_active: active }), done)) reload();
	};
	return (
		<Menu
			label={`Actions for ${endpoint.name}`}
			icon
			items={[
				{ label: endpoint.is_active ? "Deactivate" : "Activate", onSelect: () => setActive(!endpoint.is_active) },
				{ label: "Delete…", danger: true, onSelect: () => onDelete(endpoint) },
			]}
		>
			⋯
		</Menu>
	);
}

/** Asks whether to delete an endpoint. */
export function DeleteEndpoint({ endpoint, onClose, onDeleted }: { endpoint: Endpoint; onClose: () => void; onDeleted: () => void }) {
	return (
		<FormDialog
			title={`Delete ${endpoint.name}?`}
			action="Delete"
			danger
			onClose={onClose}
			onSubmit={async () => {
				await remove(pathOf(endpoint.name));
				onDeleted();
			}}
		>
			<p>
				Its {endpoint.versions_count === 1 ? "version goes" : `${endpoint.versions_count} versions go`} with it. Programs that call it get a
				404.
			</p>
		</FormDialog>
	);
}
