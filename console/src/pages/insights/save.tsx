import { useState } from "preact/hooks";
import { get, patch, post } from "../../api/client";
import type { QueryNode } from "../../api/query";
import { useResource, useSettled } from "../../api/use";
import { type Insight, type PageOf, tagsOf, titleOf } from "../../insights/model";
import { Link, pageAddress } from "../../router";
import { Button, Empty, Field, Loaded, TextInput } from "../../ui/basics";
import { attempt, Dialog, FormDialog, toast } from "../../ui/dialog";
import { Table } from "../../ui/table";
import type { Dashboard } from "../dashboards/model";

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
	const [name, setName] = useState(from ? `${titleOf(from)} (copy)` : "");
	const [description, setDescription] = useState(from?.description ?? "");
	const [tags, setTags] = useState((from?.tags ?? []).join(", "));
	const save = async () => {
		const body = { name: name.trim(), description, tags: tagsOf(tags), query, ...(dashboard && { dashboards: [dashboard] }) };
		onSaved(await post<Insight>("insights/", body));
	};
	return (
		<FormDialog title={from ? "Save as a new insight" : "Save insight"} action="Save" onSubmit={save} onClose={onClose}>
			<DetailFields {...{ name, setName, description, setDescription, tags, setTags }} />
			{dashboard !== undefined && <p class="hint">It is put on the dashboard, too.</p>}
		</FormDialog>
	);
}

/** A form for the name, the description and the tags of an insight. */
export function DetailsDialog({
	insight,
	onClose,
	onSaved,
}: {
	insight: Insight;
	onClose: () => void;
	onSaved: (insight: Insight) => void;
}) {
	const [name, setName] = useState(insight.name ?? "");
	const [description, setDescription] = useState(insight.description ?? "");
	const [tags, setTags] = useState((insight.tags ?? []).join(", "));
	const save = async () => onSaved(await patch<Insight>(`insights/${insight.id}/`, { name: name.trim(), description, tags: tagsOf(tags) }));
	return (
		<FormDialog title="Name, description, tags" action="Save" onSubmit={save} onClose={onClose}>
			<DetailFields {...{ name, setName, description, setDescription, tags, setTags }} />
		</FormDialog>
	);
}

function DetailFields(of: {
	name: string;
	setName: (name: string) => void;
	description: string;
	setDescription: (description: string) => void;
	tags: string;
	setTags: (tags: string) => void;
}) {
	return (
		<>
			<Field label="Name">{(id) => <TextInput id={id} value={of.name} onValue={of.setName} required maxLength={400} />}</Field>
			<Field label="Description">{(id) => <TextInput id={id} value={of.description} onValue={of.setDescription} />}</Field>
			<Field label="Tags" hint="With commas between them.">
				{(id) => <TextInput id={id} value={of.tags} onValue={of.setTags} />}
			</Field>
		</>
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
	const wanted = useSettled(search.trim());
	const list = useResource((signal) => get<PageOf<Dashboard>>("dashboards/", { search: wanted, limit: 50 }, signal), [wanted]);
	const on = new Set(insight.dashboards ?? []);
	const change = (d: Dashboard) => {
		const dashboards = on.has(d.id) ? [...on].filter((id) => id !== d.id) : [...on, d.id];
		return attempt(
			() => patch<Insight>(`insights/${insight.id}/`, { dashboards }).then(onChanged),
			on.has(d.id) ? `Taken off ${d.name}` : `Added to ${d.name}`,
		);
	};
	return (
		<Dialog title="Dashboards" onClose={onClose}>
			<div class="stack">
				<TextInput type="search" aria-label="Search" placeholder="Search dashboards" value={search} onValue={setSearch} />
				<Loaded of={list}>
					{({ results }) =>
						results.length === 0 ? (
							<Empty title={wanted ? "No such dashboard" : "No dashboards yet"} />
						) : (
							<Table
								label="Dashboards"
								rows={results}
								keyOf={(d) => d.id}
								columns={[
									{ name: "name", title: "Name", cell: (d) => <Link to={pageAddress("dashboard", d.id)}>{d.name}</Link> },
									{
										name: "change",
										title: <span class="visually-hidden">Add or remove</span>,
										number: true,
										cell: (d) => (
											<Button small onClick={() => change(d)} aria-label={`${on.has(d.id) ? "Remove from" : "Add to"} ${d.name}`}>
												{on.has(d.id) ? "Remove" : "Add"}
											</Button>
										),
									},
								]}
							/>
						)
					}
				</Loaded>
				<NewDashboard onMade={(d) => change(d).then(list.reload)} />
			</div>
		</Dialog>
	);
}

function NewDashboard({ onMade }: { onMade: (d: Dashboard) => void }) {
	const [name, setName] = useState("");
	const make = async (event: Event) => {
		event.preventDefault();
		const made = await attempt(async () => onMade(await post<Dashboard>("dashboards/", { name: name.trim() })));
		if (made) setName("");
	};
	return (
		<form class="insight-row" onSubmit={make}>
			<TextInput aria-label="Name of a new dashboard" placeholder="New dashboard" value={name} onValue={setName} required />
			<Button type="submit">Create and add</Button>
		</form>
	);
}

/** Deletes an insight, and says so. It can be restored by the API. */
export async function deleteInsight(insight: Insight): Promise<void> {
	await patch(`insights/${insight.id}/`, { deleted: true });
	toast(`${titleOf(insight)} was deleted.`);
}
