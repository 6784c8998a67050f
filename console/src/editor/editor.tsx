import type { ComponentType } from "preact";
import { useMemo } from "preact/hooks";
import type { QueryNode } from "../api/query";
import { Empty, Segments } from "../ui/basics";
import { type FormProps, useGroups } from "./form";
import { FunnelForm } from "./funnels";
import { withFields } from "./json";
import { insightIn, type Kind, KindSwitch, kinds, withInsight } from "./kinds";
import { LifecycleForm } from "./lifecycle";
import { MistakeAt, MistakesOf } from "./mistakes";
import { PathsForm } from "./paths";
import { RetentionForm } from "./retention";
import { StickinessForm } from "./stickiness";
import { TrendsForm } from "./trends";

export { insightIn, isInsight, newInsight } from "./kinds";

const forms: Record<Kind, ComponentType<FormProps>> = {
	TrendsQuery: TrendsForm,
	FunnelsQuery: FunnelForm,
	RetentionQuery: RetentionForm,
	PathsQuery: PathsForm,
	StickinessQuery: StickinessForm,
	LifecycleQuery: LifecycleForm,
};

interface QueryEditorProps {
	/** An insight, or a node around one, such as an InsightVizNode. */
	query: QueryNode;
	/** Gets the query after each change. Fields that the editor does not know stay as they are. */
	onQuery: (query: QueryNode) => void;
	/** The last error of the query: an ApiError is shown at the field that its attr names. */
	error?: unknown;
}

/** Edits what an insight asks. It holds no query of its own: what it shows is what it is given. */
export function QueryEditor({ query, onQuery, error }: QueryEditorProps) {
	const groups = useGroups();
	const kindSwitch = useMemo(() => new KindSwitch(), []);
	const insight = insightIn(query);
	if (!insight) return <Empty title="This query cannot be edited here">It is a {query.kind}.</Empty>;
	const Form = forms[insight.kind];
	const set = (next: QueryNode) => onQuery(withInsight(query, next));
	return (
		<MistakesOf error={error}>
			<div class="editor">
				<Segments
					label="Type of insight"
					value={insight.kind}
					choices={kinds}
					onValue={(kind) => {
						if (kind !== insight.kind) set(kindSwitch.to(insight, kind));
					}}
				/>
				<MistakeAt field="" />
				<Form key={insight.kind} query={insight} groups={groups} change={(changes) => set(withFields(insight, changes))} />
			</div>
		</MistakesOf>
	);
}
