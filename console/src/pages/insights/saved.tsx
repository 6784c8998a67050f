import { Star } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, patch, post } from "../../api/client";
import { type QueryNode, sourceOf } from "../../api/query";
import { type Resource, useResource } from "../../api/use";
import { type Details, DetailsDialog } from "../../data/details";
import { Tags } from "../../data/definition";
import { LoadedPage } from "../../data/page";
import { canAlert, firstQuery, type Insight, kindName, same, titleOf, withSource } from "../../insights/model";
import { navigate, pageAddress, place } from "../../router";
import { can } from "../../session";
import { Badge, Button, IconButton, PageHead } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { AskBeforeLeaving } from "../../ui/leaving";
import { Menu, type MenuItem } from "../../ui/menu";
import { AlertsDialog } from "./alerts";
import { CodeDialog } from "./code";
import { PublishDialog } from "./publish";
import { DashboardsDialog, deleteInsight, SaveDialog } from "./save";
import { useWorkspace, Workspace } from "./workspace";

export default function SavedInsight({ id }: { id: string }) {
	const insight = useResource((signal) => get<Insight>(`insights/${encodeURIComponent(id)}/`, {}, signal), [id]);
	return (
		<LoadedPage of={insight} title="Insight" rows={8}>
			{(data) => <Whole of={insight} insight={data} />}
		</LoadedPage>
	);
}

type Open = "details" | "as" | "dashboards" | "publish" | "alerts" | "code" | "delete" | null;

function Whole({ of, insight }: { of: Resource<Insight>; insight: Insight }) {
	const base = insight.query ? withSource(insight.query, sourceOf(insight.query)) : withSource(null, firstQuery);
	const { draft, run } = useWorkspace(base, insight);
	const [open, setOpen] = useState<Open>(null);
	const [busy, setBusy] = useState(false);
	/** What is edited now; null once the page is left. */
	const edited = useRef<QueryNode | null>(null);
	edited.current = draft.query;
	useEffect(() => () => void (edited.current = null), []);
	useEffect(() => {
		post("insights/viewed/", { insight_ids: [insight.id] }).catch(() => {});
	}, [insight.id]);
	const writes = can("insight:write");
	const shut = () => setOpen(null);
	const save = async () => {
		setBusy(true);
		const { path } = place.value;
		const sent = draft.query;
		const saved = await attempt(() => patch<Insight>(`insights/${insight.id}/`, { query: sent }).then(of.set), "Saved");
		setBusy(false);
		if (saved && place.value.path === path && edited.current && same(edited.current, sent)) navigate(path, { replace: true });
	};
	const saveDetails = async (_: Details, changes: Partial<Details>) => of.set(await patch<Insight>(`insights/${insight.id}/`, changes));
	const star = () => attempt(() => patch<Insight>(`insights/${insight.id}/`, { favorited: !insight.favorited }).then(of.set));
	const go = (...to: string[]) => navigate(pageAddress("insights", ...to), { sure: true });
	const menu: MenuItem[] = [
		{ label: "Name, description, tags", disabled: !writes, onSelect: () => setOpen("details") },
		{ label: "Save as…", disabled: !writes, onSelect: () => setOpen("as") },
		{ label: "Dashboards…", disabled: !writes || !can("dashboard:read"), onSelect: () => setOpen("dashboards") },
		{ label: "Publish as an endpoint…", disabled: !can("endpoint:write"), onSelect: () => setOpen("publish") },
		{ label: "Alerts…", disabled: !can("alert:read") || !canAlert(insight.query), onSelect: () => setOpen("alerts") },
		{ label: "Show as code", onSelect: () => setOpen("code") },
		{ label: "Delete", danger: true, disabled: !writes, onSelect: () => setOpen("delete") },
	];
	return (
		<>
			<PageHead
				title={
					<>
						{titleOf(insight)} {draft.changed && <Badge tone="warn">Unsaved changes</Badge>}
					</>
				}
				about={
					<>
						{kindName(draft.query)}
						{insight.description && <> · {insight.description}</>} <Tags tags={insight.tags ?? []} />
					</>
				}
			>
				<IconButton
					label={insight.favorited ? "Remove from favorites" : "Add to favorites"}
					aria-pressed={insight.favorited}
					disabled={!writes}
					onClick={star}
				>
					<Star size={16} class={insight.favorited ? "starred" : undefined} />
				</IconButton>
				{draft.changed && (
					<Button onClick={() => draft.set(base)} disabled={busy}>
						Discard
					</Button>
				)}
				{writes && (
					<Button look="primary" disabled={!draft.changed || draft.wrong} busy={busy} onClick={save}>
						Save
					</Button>
				)}
				<Menu label="More" icon items={menu}>
					⋯
				</Menu>
			</PageHead>
			<Workspace draft={draft} run={run} saved={insight} />
			{open === "details" && <DetailsDialog of={insight} onClose={shut} onSave={saveDetails} />}
			{open === "as" && <SaveDialog query={draft.query} from={insight} onClose={shut} onSaved={(made) => go(made.short_id)} />}
			{open === "dashboards" && <DashboardsDialog insight={insight} onClose={shut} onChanged={of.set} />}
			{open === "publish" && (
				<PublishDialog query={draft.query} title={titleOf(insight)} insight={draft.changed ? undefined : insight} onClose={shut} />
			)}
			{open === "alerts" && <AlertsDialog insight={insight} onClose={shut} />}
			{open === "code" && <CodeDialog query={draft.query} result={run.ran?.result} insight={insight} onClose={shut} />}
			{open === "delete" && (
				<FormDialog
					title={`Delete ${titleOf(insight)}?`}
					action="Delete"
					danger
					onSubmit={() => deleteInsight(insight).then(() => go())}
					onClose={shut}
				>
					<p>It is taken off its dashboards, too. Endpoints made from it stay.</p>
				</FormDialog>
			)}
			{draft.unsaved && writes && <AskBeforeLeaving what="The changes of this insight are not saved." />}
		</>
	);
}
