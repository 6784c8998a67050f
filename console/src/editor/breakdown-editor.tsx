import { Plus, X } from "lucide-preact";
import { useState } from "preact/hooks";
import { Button, Checkbox, IconButton } from "../ui/basics";
import { type Breakdown, breakdownsOf, cohortsOf, everybody, withBreakdowns, withCohorts } from "./breakdowns";
import { Focused } from "./filter-group";
import type { FilterType, Property } from "./filters";
import { NumberInput } from "./inputs";
import { type Fields, withFields, withItem } from "./json";
import { MistakeAt } from "./mistakes";
import { PropertyPicker, usePropertyName } from "./property-picker";
import { NumberField } from "./sections";

interface BreakdownEditorProps {
	/** A breakdownFilter; nothing for none. Fields that it does not know are kept. */
	filter: Fields | null | undefined;
	onFilter: (filter: Fields) => void;
	/** The most properties. Default: 3. */
	most?: number;
	/** Whether numbers can be put into ranges, URLs be cleaned, and the rest be hidden. Default: yes. */
	extended?: boolean;
	/** The types that are offered, besides cohorts. */
	types?: readonly FilterType[];
	/** The place in the query, for mistakes. */
	at?: string;
}

const splitTypes: FilterType[] = ["event", "person", "group", "session", "hogql"];

/** What an insight is split by: properties, expressions or cohorts, and how many values are shown. */
export function BreakdownEditor({
	filter,
	onFilter,
	most = 3,
	extended = true,
	types = splitTypes,
	at = "breakdownFilter",
}: BreakdownEditorProps) {
	const split = filter ?? {};
	const cohorts = cohortsOf(split);
	const items = breakdownsOf(split);
	const several = Array.isArray(split.breakdowns) && split.breakdowns.length > 0;
	const used = items.length > 0 || (cohorts?.length ?? 0) > 0;
	const set = (i: number, next: Breakdown | undefined) => onFilter(withBreakdowns(split, withItem(items, i, next)));
	const add = (p: Property) => {
		if (p.type === "cohort") onFilter(withCohorts(split, [...(cohorts ?? []), p.key]));
		else onFilter(withBreakdowns(split, [...items, p]));
	};
	const offered: FilterType[] = cohorts?.length ? ["cohort"] : items.length > 0 ? [...types] : [...types, "cohort"];
	return (
		<div class="editor-stack">
			{items.map((item, i) => (
				<Item
					key={i}
					item={item}
					at={several ? `${at}.breakdowns.${i}` : undefined}
					types={item.type === "cohort" ? ["cohort"] : types}
					extended={extended}
					onItem={(next) => set(i, next)}
				/>
			))}
			{cohorts?.map((id, i) => (
				<CohortItem key={id} id={id} onRemove={() => onFilter(withCohorts(split, withItem(cohorts, i, undefined)))} />
			))}
			<div class="editor-adds">
				{(cohorts?.length ? cohorts.length < 50 : items.length < most) && (
					<Add label={cohorts?.length ? "Add cohort" : "Add breakdown"} types={offered} onAdd={add} />
				)}
				{cohorts && cohorts.length > 0 && !cohorts.includes(everybody) && (
					<Button small look="quiet" onClick={() => onFilter(withCohorts(split, [...cohorts, everybody]))}>
						Add all people
					</Button>
				)}
			</div>
			{used && !cohorts?.length && <Options split={split} onFilter={onFilter} at={at} extended={extended} />}
			<MistakeAt field={at} />
		</div>
	);
}

function Options({ split, onFilter, at, extended }: { split: Fields; onFilter: (filter: Fields) => void; at: string; extended: boolean }) {
	return (
		<>
			<NumberField
				label="Values shown"
				value={split.breakdown_limit}
				without={25}
				min={1}
				max={1000}
				at={`${at}.breakdown_limit`}
				onValue={(n) => onFilter(withFields(split, { breakdown_limit: n }))}
			/>
			{extended && (
				<>
					<Checkbox
						label="Leave out the other values"
						checked={split.breakdown_hide_other_aggregation === true}
						onValue={(on) => onFilter(withFields(split, { breakdown_hide_other_aggregation: on || undefined }))}
					/>
					<Checkbox
						label="Clean paths by the project's rules"
						checked={split.breakdown_path_cleaning === true}
						onValue={(on) => onFilter(withFields(split, { breakdown_path_cleaning: on || undefined }))}
					/>
				</>
			)}
		</>
	);
}

function Item({
	item,
	onItem,
	types,
	extended,
	at,
}: {
	item: Breakdown;
	onItem: (item: Breakdown | undefined) => void;
	types: readonly FilterType[];
	extended: boolean;
	at?: string;
}) {
	const name = usePropertyName(item);
	return (
		<div class="editor-filter" role="group" aria-label={`Breakdown by ${name}`}>
			<div class="editor-filter-parts">
				<PropertyPicker
					label="Breakdown"
					value={item}
					types={types}
					onValue={(p) => onItem({ ...p, label: undefined, normalizeURL: undefined, bins: undefined, rest: item.rest })}
				/>
				{extended && item.type !== "cohort" && (
					<>
						<label class="editor-bins">
							<span>Ranges</span>
							<NumberInput min={1} max={1000} value={item.bins} placeholder="none" onValue={(bins) => onItem({ ...item, bins })} />
						</label>
						<Checkbox
							label="Trim URLs"
							checked={item.normalizeURL === true}
							onValue={(on) => onItem({ ...item, normalizeURL: on || undefined })}
						/>
					</>
				)}
			</div>
			<IconButton label={`Remove the breakdown by ${name}`} small onClick={() => onItem(undefined)}>
				<X size={14} />
			</IconButton>
			<MistakeAt field={at} />
		</div>
	);
}

function CohortItem({ id, onRemove }: { id: string; onRemove: () => void }) {
	const named = usePropertyName(id === everybody ? null : { type: "cohort", key: id });
	const name = id === everybody ? "All people" : named;
	return (
		<div class="editor-filter">
			<p class="editor-kept">{name}</p>
			<IconButton label={`Remove the breakdown by ${name}`} small onClick={onRemove}>
				<X size={14} />
			</IconButton>
		</div>
	);
}

function Add({ label, types, onAdd }: { label: string; types: readonly FilterType[]; onAdd: (p: Property) => void }) {
	const [open, setOpen] = useState(false);
	if (!open) {
		return (
			<Button small look="quiet" icon={<Plus size={14} />} onClick={() => setOpen(true)}>
				{label}
			</Button>
		);
	}
	return (
		<Focused class="editor-adding" onLeave={() => setOpen(false)}>
			<PropertyPicker
				label={`${label}: property`}
				value={null}
				types={types}
				onValue={(p) => {
					setOpen(false);
					onAdd(p);
				}}
			/>
		</Focused>
	);
}
