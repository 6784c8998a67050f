import { ArrowDown, ArrowUp, Ellipsis, Plus, X } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button, Checkbox, IconButton } from "../ui/basics";
import { Menu, type MenuItem } from "../ui/menu";
import { EventPicker, useEntityName } from "./event-picker";
import { AddFilter, FilterGroup, Focused } from "./filter-group";
import { everyFilterType, type Filters, membersOf, withMembers } from "./filters";
import { DraftInput } from "./inputs";
import { type Fields, textOf, withFields, withItem, withMoved } from "./json";
import { MathFields } from "./math-fields";
import type { GroupKind, MathKind } from "./maths";
import { MistakeAt } from "./mistakes";
import { entityOf, eventsOf, letterOf, newSeries, nodesOf, withEntity, withNodes } from "./series";
import type { Entity } from "./suggest";

interface SeriesListProps {
	series: Fields[];
	onSeries: (series: Fields[]) => void;
	/** What one is called: "Series" or "Step". */
	noun: string;
	/** Whether they are lettered, as in formulas, or numbered. */
	letters?: boolean;
	/** The kind whose maths are offered; none without it. */
	maths?: MathKind;
	groups: readonly GroupKind[];
	/** The fewest and the most. */
	least?: number;
	most?: number;
	/** The place in the query, for mistakes. */
	at?: string;
	/** Whether steps can be optional. */
	optional?: boolean;
	/** Whether every math takes its property, as in box plots. */
	property?: boolean;
	/** Whether the numbers are put into ranges by a breakdown. */
	histogram?: boolean;
}

/** The series or steps of an insight. Alt and an arrow key move the one that has the focus. */
export function SeriesList({ series, onSeries, noun, least = 1, most = 100, at = "series", ...rest }: SeriesListProps) {
	const list = useRef<HTMLOListElement>(null);
	const [focus, setFocus] = useState<number | null>(null);
	useEffect(() => {
		if (focus === null) return;
		(list.current?.children[focus] as HTMLElement | undefined)?.focus();
		setFocus(null);
	}, [focus]);
	const move = (from: number, to: number) => {
		if (to < 0 || to >= series.length) return;
		onSeries(withMoved(series, from, to));
		setFocus(to);
	};
	return (
		<div class="editor-stack">
			<ol class="editor-series" ref={list}>
				{series.map((node, i) => (
					<SeriesRow
						key={i}
						node={node}
						at={`${at}.${i}`}
						mark={rest.letters ? letterOf(i) : String(i + 1)}
						noun={noun}
						first={i === 0}
						last={i === series.length - 1}
						onNode={(next) => onSeries(withItem(series, i, next))}
						onMove={(by) => move(i, i + by)}
						onDuplicate={series.length < most ? () => onSeries(series.toSpliced(i + 1, 0, node)) : undefined}
						onRemove={series.length > least ? () => onSeries(withItem(series, i, undefined)) : undefined}
						{...rest}
					/>
				))}
			</ol>
			<MistakeAt field={at} />
			{series.length < most && (
				<AddSeries label={`Add ${noun.toLowerCase()}`} onAdd={(entity) => onSeries([...series, newSeries(entity)])} />
			)}
		</div>
	);
}

/** A button that becomes a field for the event of a new series. */
export function AddSeries({ label, onAdd }: { label: string; onAdd: (entity: Entity) => void }) {
	const [open, setOpen] = useState(false);
	if (!open) {
		return (
			<div class="editor-adds">
				<Button small look="quiet" icon={<Plus size={14} />} onClick={() => setOpen(true)}>
					{label}
				</Button>
			</div>
		);
	}
	return (
		<Focused onLeave={() => setOpen(false)}>
			<EventPicker
				label={`${label}: event`}
				value={null}
				onValue={(entity) => {
					setOpen(false);
					onAdd(entity);
				}}
			/>
		</Focused>
	);
}

interface RowProps extends Omit<SeriesListProps, "series" | "onSeries" | "least" | "most"> {
	node: Fields;
	mark: string;
	first: boolean;
	last: boolean;
	onNode: (node: Fields) => void;
	onMove: (by: number) => void;
	onDuplicate?: () => void;
	onRemove?: () => void;
}

function SeriesRow(props: RowProps) {
	const { node, mark, noun, first, last, onNode, onMove, onDuplicate, onRemove, maths, groups, at, optional } = props;
	const [naming, setNaming] = useState(false);
	const [filtering, setFiltering] = useState(false);
	const name = `${noun} ${mark}`;
	const filters = node.properties as Filters;
	const filtered = membersOf(filters).length > 0;
	const custom = textOf(node.custom_name);
	const menu: MenuItem[] = [
		{ label: "Filter", onSelect: () => setFiltering(true), disabled: filtered },
		{ label: "Rename", onSelect: () => setNaming(true) },
		{ label: "Or another event", onSelect: () => onNode(withNodes(node, [...membersForGroup(node), { kind: "EventsNode", event: null }])) },
		{ label: "Duplicate", onSelect: () => onDuplicate?.(), disabled: !onDuplicate },
		{ label: "Remove", onSelect: () => onRemove?.(), disabled: !onRemove, danger: true },
	];
	const events = eventsOf(node);
	const nameField = (
		<DraftInput
			aria-label={`Name of ${name}`}
			placeholder="Name"
			value={custom}
			onValue={(text) => onNode(withFields(node, { custom_name: text.trim() || undefined }))}
		/>
	);
	return (
		<li
			tabIndex={-1}
			aria-label={name}
			class="editor-series-row"
			onKeyDown={(event) => {
				if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
				event.preventDefault();
				event.stopPropagation();
				onMove(event.key === "ArrowUp" ? -1 : 1);
			}}
		>
			<div class="editor-series-head">
				<span class="editor-mark" aria-hidden="true">
					{mark}
				</span>
				<Entities node={node} onNode={onNode} label={name} />
				{!(first && last) && (
					<>
						<IconButton label={`Move ${name} up (Alt ↑)`} small disabled={first} onClick={() => onMove(-1)}>
							<ArrowUp size={14} />
						</IconButton>
						<IconButton label={`Move ${name} down (Alt ↓)`} small disabled={last} onClick={() => onMove(1)}>
							<ArrowDown size={14} />
						</IconButton>
					</>
				)}
				<Menu icon label={`More for ${name}`} items={menu}>
					<Ellipsis size={16} aria-hidden="true" />
				</Menu>
			</div>
			<div class="editor-series-body">
				{naming ? <Focused onLeave={() => setNaming(false)}>{nameField}</Focused> : custom && nameField}
				{maths && (
					<MathFields
						name={name}
						node={node}
						onNode={onNode}
						kind={maths}
						groups={groups}
						at={at ?? ""}
						events={events}
						property={props.property}
						histogram={props.histogram}
					/>
				)}
				{optional && !first && (
					<Checkbox
						label="Optional"
						checked={node.optionalInFunnel === true}
						onValue={(on) => onNode(withFields(node, { optionalInFunnel: on || undefined }))}
					/>
				)}
				{filtered ? (
					<FilterGroup
						label={`Filters of ${name}`}
						value={filters}
						events={events}
						at={`${at}.properties`}
						onValue={(properties) => onNode(withFields(node, { properties: properties ?? [] }))}
					/>
				) : (
					filtering && (
						<FirstFilter
							events={events}
							onAdd={(filter) => onNode(withFields(node, { properties: withMembers(filters, [filter]) }))}
							onClose={() => setFiltering(false)}
						/>
					)
				)}
				<MistakeAt field={at} />
			</div>
		</li>
	);
}

const membersForGroup = (node: Fields): Fields[] => {
	const entity = entityOf(node);
	return entity ? [newSeries(entity)] : nodesOf(node);
};

function FirstFilter({ events, onAdd, onClose }: { events: string[]; onAdd: (filter: Fields) => void; onClose: () => void }) {
	return (
		<div class="editor-adds">
			<AddFilter label="Add filter" types={everyFilterType} events={events} onAdd={onAdd} open onClose={onClose} />
		</div>
	);
}

/** The event or action of a node, or those of a group of which any may match. */
export function Entities({ node, onNode, label }: { node: Fields; onNode: (node: Fields) => void; label: string }) {
	const nodes = nodesOf(node);
	const entity = entityOf(node);
	if (entity) {
		return (
			<div class="editor-entity">
				<EventPicker label={`${label}: event`} value={entity} onValue={(next) => onNode(withEntity(node, next))} />
			</div>
		);
	}
	return (
		<div class="editor-entity editor-stack">
			{nodes.map((member, i) => (
				<Member
					key={i}
					member={member}
					label={`${label}: event ${i + 1}`}
					onMember={(next) => onNode(withNodes(node, withItem(nodes, i, next)))}
					onRemove={() => onNode(withNodes(node, withItem(nodes, i, undefined)))}
				/>
			))}
			<AddSeries label="Or another event" onAdd={(next) => onNode(withNodes(node, [...nodes, newSeries(next)]))} />
		</div>
	);
}

function Member({
	member,
	label,
	onMember,
	onRemove,
}: {
	member: Fields;
	label: string;
	onMember: (node: Fields) => void;
	onRemove: () => void;
}) {
	const entity = entityOf(member);
	const name = useEntityName(entity);
	return (
		<div class="editor-pair">
			<EventPicker label={label} value={entity} onValue={(next) => onMember(withEntity(member, next))} />
			<IconButton label={`Remove ${name}`} small onClick={onRemove}>
				<X size={14} />
			</IconButton>
		</div>
	);
}
