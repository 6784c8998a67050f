import { useState } from "preact/hooks";
import { get, type Page, patch, post } from "../../api/client";
import { useResource, useSettled } from "../../api/use";
import { type Insight, kindName, titleOf } from "../../insights/model";
import { Button, Empty, Field, Loaded, TextInput } from "../../ui/basics";
import { attempt, Dialog } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { Markdown } from "../../ui/markdown-view";
import { Pager, Table } from "../../ui/table";
import type { Dashboard, Tile } from "./model";

const pageSize = 20;

/** A list of insights, to put one or more on a dashboard. */
export function AddInsight({
	dashboard,
	onClose,
	onAdded,
}: {
	dashboard: Dashboard;
	onClose: () => void;
	onAdded: (d: Dashboard) => void;
}) {
	const [search, setSearch] = useState("");
	const [offset, setOffset] = useState(0);
	const wanted = useSettled(search.trim());
	const list = useResource(
		(signal) =>
			get<Page<Insight>>(
				"insights/",
				{ basic: true, search: wanted, order: wanted ? null : "-last_modified_at", limit: pageSize, offset },
				signal,
			),
		[wanted, offset],
	);
	const there = new Set((dashboard.tiles ?? []).map((t) => t.insight?.id));
	const add = (insight: Insight) =>
		attempt(() => patch<Dashboard>(`dashboards/${dashboard.id}/`, { tiles: [{ insight: insight.id }] }).then(onAdded));
	return (
		<Dialog title="Add an insight" onClose={onClose} wide>
			<div class="stack">
				<TextInput
					type="search"
					aria-label="Search"
					placeholder="Search in names, descriptions and tags"
					value={search}
					onValue={(value) => {
						setSearch(value);
						setOffset(0);
					}}
				/>
				<Loaded of={list} rows={6}>
					{(page) =>
						page.results.length === 0 && offset === 0 ? (
							<Empty title="No matching insights" />
						) : (
							<>
								<Table
									label="Insights"
									rows={page.results}
									keyOf={(i) => i.id}
									columns={[
										{ name: "name", title: "Name", cell: titleOf },
										{ name: "kind", title: "Kind", extra: true, cell: (i) => kindName(i.query) },
										{
											name: "add",
											title: <span class="visually-hidden">Add</span>,
											number: true,
											cell: (i) => (
												<Button small disabled={there.has(i.id)} onClick={() => add(i)} aria-label={`Add ${titleOf(i)}`}>
													{there.has(i.id) ? "Added" : "Add"}
												</Button>
											),
										},
									]}
								/>
								<Pager offset={offset} limit={pageSize} count={page.count} more={page.next !== null} onOffset={setOffset} />
							</>
						)
					}
				</Loaded>
			</div>
		</Dialog>
	);
}

/** A form for a text of a dashboard: a new one, or that of a tile. */
export function TextDialog({
	dashboard,
	tile,
	onClose,
	onSaved,
}: {
	dashboard: Dashboard;
	tile?: Tile;
	onClose: () => void;
	onSaved: () => void;
}) {
	const [body, setBody] = useState(tile?.text?.body ?? "");
	const save = async () => {
		const path = `dashboards/${dashboard.id}/`;
		if (tile) await post(`${path}update_text_tile/`, { tile_id: tile.id, body });
		else await post(`${path}create_text_tile/`, { body });
		onSaved();
	};
	return (
		<FormDialog title={tile ? "Edit text" : "Add a text"} action={tile ? "Save" : "Add"} onSubmit={save} onClose={onClose} wide>
			<div class="dash-text">
				<Field label="Text" hint="Markdown: # title, **bold**, *italic*, `code`, - list, [link](https://…).">
					{(id) => (
						<textarea id={id} rows={10} value={body} required maxLength={4000} onInput={(event) => setBody(event.currentTarget.value)} />
					)}
				</Field>
				<section aria-label="Preview" class="dash-preview">
					<Markdown text={body} />
				</section>
			</div>
		</FormDialog>
	);
}
