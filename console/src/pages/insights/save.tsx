import { useState } from "preact/hooks";
import { get, type Page, patch, post } from "../../api/client";
import type { QueryNode } from "../../api/query";
import { useResource, useSettled } from "../../api/use";
import { type Details, DetailsDialog } from "../../data/details";
import { type Insight, titleOf } from "../../insights/model";
import { Link, pageAddress } from "../../router";
import { can } from "../../session";
import { Button, Empty, Loaded, TextInput } from "../../ui/basics";
import { attempt, Dialog, toast } from "../../ui/dialog";
import { Table } from "../../ui/table";
import { type Dashboard, nameOf } from "../dashboards/model";
import { changeDashboards } from "./placing";

interface SaveProps {
	query: QueryNode;
	/** The insight that the new one is a copy of. */
	from?: Insight;
	/** The number of a dashboard that the insight is for. */
	dashboard?: number;
	onClose: () => void;
	onSaved: (insight: Insight) => void;
}

/** A form that saves a query as a new insight. */
export function SaveDialog({ query, from, dashboard, onClose, onSaved }: SaveProps) {
	const save = async (details: Details) =>
		onSaved(await post<Insight>("insights/", { ...details, query, ...(dashboard && { dashboards: [dashboard] }) }));
	return (
		<DetailsDialog
			title={from ? "Save as a new insight" : "Save insight"}
			of={from && { ...from, name: `${titleOf(from)} (copy)` }}
			onSave={save}
			onClose={onClose}
		>
			{dashboard !== undefined && <p class="hint">It is added to the dashboard, too.</p>}
		</DetailsDialog>
	);
}

/** A list of dashboards, to put an insight on them or take it off. */
export function DashboardsDialog({
	insight,
	onClose,
	onChanged,
}: {
	insight: Insight;
	onClose: () => void;
	onChanged: (insight: Insight) => void;
}) {
	const [search, setSearch] = useState("");
	const [busy, setBusy] = useState(false);
	const wanted = useSettled(search.trim());
	const list = useResource((signal) => get<Page<Dashboard>>("dashboards/", { search: wanted, limit: 50 }, signal), [wanted]);
	const on = new Set(insight.dashboards ?? []);
	// A change reads and sends all dashboards of the insight, so the next one waits for its answer.
	const during = async (work: () => Promise<void>, done: string) => {
		setBusy(true);
		const worked = await attempt(work, done);
		setBusy(false);
		return worked;
	};
	const add = async (id: number) => onChanged(await changeDashboards(insight.id, (now) => [...new Set([...now, id])]));
	const takeOff = async (id: number) => onChanged(await changeDashboards(insight.id, (now) => now.filter((other) => other !== id)));
	const toggle = (d: Dashboard) =>
		on.has(d.id) ? during(() => takeOff(d.id), `Taken off ${nameOf(d)}`) : during(() => add(d.id), `Added to ${nameOf(d)}`);
	const create = (name: string) =>
		during(async () => {
			const made = await post<Dashboard>("dashboards/", { name });
			list.reload();
			await add(made.id);
		}, `Added to ${name}`);
	return (
		<Dialog title="Dashboards" onClose={onClose}>
			<div class="stack">
				<TextInput type="search" aria-label="Search" placeholder="Search dashboards" value={search} onValue={setSearch} />
				<Loaded of={list}>
					{({ results }) =>
						results.length === 0 ? (
							<Empty title={wanted ? "No matching dashboards" : "No dashboards yet"} />
						) : (
							<Table
								label="Dashboards"
								rows={results}
								keyOf={(d) => d.id}
								columns={[
									{ name: "name", title: "Name", cell: (d) => <Link to={pageAddress("dashboard", d.id)}>{nameOf(d)}</Link> },
									{
										name: "change",
										title: <span class="visually-hidden">Add or remove</span>,
										number: true,
										cell: (d) => (
											<Button
												small
												disabled={busy}
												onClick={() => toggle(d)}
												aria-label={`${on.has(d.id) ? "Remove from" : "Add to"} ${nameOf(d)}`}
											>
												{on.has(d.id) ? "Remove" : "Add"}
											</Button>
										),
									},
								]}
							/>
						)
					}
				</Loaded>
				{can("dashboard:write") && <NewDashboard busy={busy} onCreate={create} />}
			</div>
		</Dialog>
	);
}

function NewDashboard({ busy, onCreate }: { busy: boolean; onCreate: (name: string) => Promise<boolean> }) {
	const [name, setName] = useState("");
	const create = async (event: Event) => {
		event.preventDefault();
		if (await onCreate(name.trim())) setName("");
	};
	return (
		<form class="insight-row" onSubmit={create}>
			<TextInput aria-label="Name of a new dashboard" placeholder="New dashboard" value={name} onValue={setName} required />
			<Button type="submit" busy={busy}>
				Create and add
			</Button>
		</form>
	);
}

/** Deletes an insight, and says so. It can be restored by the API. */
export async function deleteInsight(insight: Insight): Promise<void> {
	await patch(`insights/${insight.id}/`, { deleted: true });
	toast(`${titleOf(insight)} was deleted`);
}
