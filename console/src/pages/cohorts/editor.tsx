import { X } from "lucide-preact";
import { Button, IconButton, Segments } from "../../ui/basics";
import { Menu } from "../../ui/menu";
import { type Group, isGroup, kinds, newLeaf, withMember } from "./criteria";
import { LeafEditor } from "./leaf";

/** How deep groups can be in one another. */
const deepest = 10;

/** The criteria of a dynamic cohort. */
export function CriteriaEditor({ group, onGroup, disabled }: { group: Group; onGroup: (group: Group) => void; disabled?: boolean }) {
	return (
		<fieldset class="cohorts-criteria" disabled={disabled}>
			<legend class="visually-hidden">Criteria</legend>
			<GroupEditor group={group} onGroup={onGroup} depth={1} path="" />
		</fieldset>
	);
}

function GroupEditor({
	group,
	onGroup,
	onRemove,
	depth,
	path,
}: {
	group: Group;
	onGroup: (group: Group) => void;
	onRemove?: () => void;
	depth: number;
	path: string;
}) {
	const add = (member: Group["values"][number]) => onGroup({ ...group, values: [...group.values, member] });
	return (
		<div class={depth > 1 ? "cohorts-group cohorts-inner" : "cohorts-group"} role="group" aria-label={path ? `Group ${path}` : "Criteria"}>
			<header class="cohorts-head">
				<span>People who satisfy</span>
				<Segments
					label={path ? `How group ${path} is combined` : "How criteria are combined"}
					value={group.type}
					choices={[
						{ value: "AND", label: "all of" },
						{ value: "OR", label: "any of" },
					]}
					onValue={(type) => onGroup({ ...group, type })}
				/>
				{onRemove && (
					<IconButton label={`Remove group ${path}`} onClick={onRemove}>
						<X size={14} />
					</IconButton>
				)}
			</header>
			{group.values.map((member, i) => {
				const at = path ? `${path}.${i + 1}` : String(i + 1);
				const change = (next: typeof member) => onGroup(withMember(group, i, next));
				const remove = () => onGroup(withMember(group, i, undefined));
				return isGroup(member) ? (
					<GroupEditor key={i} group={member} onGroup={change} onRemove={remove} depth={depth + 1} path={at} />
				) : (
					<LeafEditor key={i} leaf={member} onLeaf={change} onRemove={remove} label={`Criterion ${at}`} />
				);
			})}
			<div class="actions cohorts-add">
				<Menu
					label={path ? `Add a criterion to group ${path}` : "Add a criterion"}
					items={kinds.map(({ value, label }) => ({ label: `People who ${label}`, onSelect: () => add(newLeaf(value)) }))}
				>
					Add a criterion
				</Menu>
				{depth < deepest && (
					<Button look="quiet" onClick={() => add({ type: group.type === "AND" ? "OR" : "AND", values: [] })}>
						Add a group
					</Button>
				)}
			</div>
		</div>
	);
}
