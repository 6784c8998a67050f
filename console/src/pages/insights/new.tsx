import { useState } from "preact/hooks";
import type { QueryNode } from "../../api/query";
import { newInsight } from "../../editor/editor";
import { firstQuery, withSource } from "../../insights/model";
import { navigate, pageAddress, place } from "../../router";
import { can } from "../../session";
import { Badge, Button, PageHead } from "../../ui/basics";
import { AskBeforeLeaving } from "../../ui/leaving";
import { Menu } from "../../ui/menu";
import { CodeDialog } from "./code";
import { PublishDialog } from "./publish";
import { SaveDialog } from "./save";
import { useWorkspace, Workspace } from "./workspace";

/** The kinds by the names that links to new insights have in PostHog. */
const kinds = {
	TRENDS: "TrendsQuery",
	FUNNELS: "FunnelsQuery",
	RETENTION: "RetentionQuery",
	PATHS: "PathsQuery",
	STICKINESS: "StickinessQuery",
	LIFECYCLE: "LifecycleQuery",
} as const;

/** What a new insight begins with: `?insight=FUNNELS` asks for a kind. */
function begin(search: string): QueryNode {
	const kind = kinds[new URLSearchParams(search).get("insight") as keyof typeof kinds];
	return withSource(null, kind ? newInsight(kind) : firstQuery);
}

export default function NewInsight() {
	const [base] = useState(() => begin(place.value.search));
	const { draft, run } = useWorkspace(base);
	const [open, setOpen] = useState<"save" | "code" | "publish" | null>(null);
	const dashboard = Number.parseInt(new URLSearchParams(place.value.search).get("dashboard") ?? "", 10) || undefined;
	const shut = () => setOpen(null);
	const saved = (id: string) => navigate(pageAddress("insights", id), { replace: true, sure: true });
	return (
		<>
			<PageHead title={<>New insight {draft.changed && <Badge tone="warn">Not saved</Badge>}</>}>
				{can("insight:write") && (
					<Button look="primary" disabled={draft.wrong} onClick={() => setOpen("save")}>
						Save
					</Button>
				)}
				<Menu
					label="More"
					icon
					items={[
						{ label: "Publish as an endpoint", disabled: !can("endpoint:write"), onSelect: () => setOpen("publish") },
						{ label: "Show as code", onSelect: () => setOpen("code") },
					]}
				>
					⋯
				</Menu>
			</PageHead>
			<Workspace draft={draft} run={run} />
			{open === "save" && <SaveDialog query={draft.query} dashboard={dashboard} onClose={shut} onSaved={(i) => saved(i.short_id)} />}
			{open === "code" && <CodeDialog query={draft.query} result={run.ran?.result} onClose={shut} />}
			{open === "publish" && <PublishDialog query={draft.query} title="" onClose={shut} />}
			{draft.unsaved && can("insight:write") && <AskBeforeLeaving what="The new insight is not saved." />}
		</>
	);
}
