import { X } from "lucide-preact";
import { Checkbox, IconButton, Select } from "../ui/basics";
import { BreakdownEditor } from "./breakdown-editor";
import { breakdownsOf } from "./breakdowns";
import { FilterGroup } from "./filter-group";
import type { Filters } from "./filters";
import { type FormProps, inner } from "./form";
import { exclusionsFor, fitted } from "./funnel-steps";
import { DraftInput, NumberInput } from "./inputs";
import { type Fields, fieldsOf, listOf, numberOf, textOf, withFields, withItem } from "./json";
import { MistakeAt } from "./mistakes";
import {
	ActorField,
	ChoiceField,
	DatesSection,
	FiltersSection,
	Labelled,
	More,
	MoreDates,
	NumberField,
	SamplingField,
	Section,
	usesMoreDates,
} from "./sections";
import { eventsOf, newSeries } from "./series";
import { AddSeries, Entities, SeriesList } from "./series-list";

const windowUnits = ["second", "minute", "hour", "day", "week", "month"].map((value) => ({ value, label: `${value}s` }));

/** The fields of a FunnelsQuery. */
export function FunnelForm(props: FormProps) {
	const { query, change, groups } = props;
	const steps = listOf(query.series).map(fieldsOf);
	const filter = fieldsOf(query.funnelsFilter);
	const set = inner(props, "funnelsFilter");
	const viz = textOf(filter.funnelVizType) || "steps";
	const order = textOf(filter.funnelOrderType) || "ordered";
	return (
		<>
			<Section title="Steps">
				<SeriesList
					series={steps}
					onSeries={(series) => change({ series, ...fitted(filter, steps.length, series.length) })}
					noun="Step"
					maths="FunnelsQuery"
					groups={groups}
					least={2}
					most={32}
					optional={(viz === "steps" && order !== "unordered") || steps.some((s) => s.optionalInFunnel === true)}
				/>
				<ChoiceField
					label="Order"
					value={order}
					choices={[
						{ value: "ordered", label: "In order, others in between" },
						{ value: "strict", label: "In order, nothing in between" },
						{ value: "unordered", label: "Any order" },
					]}
					at="funnelsFilter.funnelOrderType"
					onValue={(value) => set({ funnelOrderType: value, ...exclusionsFor(filter, value, steps.length) })}
				/>
				<Window {...props} />
				<ActorField {...props} />
				<AggregateBy {...props} />
			</Section>
			<Exclusions {...props} steps={steps.length} order={order} />
			<FiltersSection {...props} />
			{viz !== "time_to_convert" && (
				<Section title="Breakdown">
					<BreakdownEditor
						filter={fieldsOf(query.breakdownFilter)}
						extended={false}
						onFilter={(next) => change({ breakdownFilter: next })}
					/>
					<Attribution {...props} steps={steps.length} order={order} />
				</Section>
			)}
			<DatesSection {...props} interval={viz === "trends"} />
			<Chart {...props} viz={viz} steps={steps.length} />
			<More title="More" open={usesMoreDates(query) || query.samplingFactor !== undefined}>
				<MoreDates {...props} />
				<SamplingField {...props} />
			</More>
		</>
	);
}

function Window(props: FormProps) {
	const filter = fieldsOf(props.query.funnelsFilter);
	const set = inner(props, "funnelsFilter");
	return (
		<Labelled label="Within" at="funnelsFilter.funnelWindowInterval">
			{(id) => (
				<div class="editor-pair">
					<NumberInput
						id={id}
						min={1}
						max={100000}
						placeholder="14"
						value={numberOf(filter.funnelWindowInterval)}
						onValue={(n) => set({ funnelWindowInterval: n })}
					/>
					<Select
						aria-label="Unit of the time for all steps"
						value={textOf(filter.funnelWindowIntervalUnit) || "day"}
						choices={windowUnits}
						onValue={(unit) => set({ funnelWindowIntervalUnit: unit })}
					/>
				</div>
			)}
		</Labelled>
	);
}

function AggregateBy(props: FormProps) {
	const own = textOf(fieldsOf(props.query.funnelsFilter).funnelAggregateByHogQL);
	const set = inner(props, "funnelsFilter");
	const session = "properties.$session_id";
	const mode = own === "" ? "" : own === session ? session : "other";
	return (
		<>
			<ChoiceField
				label="Match steps by"
				value={mode}
				choices={[
					{ value: "", label: "Person or group" },
					{ value: session, label: "Session" },
					{ value: "other", label: "Value of an expression" },
				]}
				at="funnelsFilter.funnelAggregateByHogQL"
				onValue={(value) => set({ funnelAggregateByHogQL: value === "other" ? "distinct_id" : value || undefined })}
			/>
			{mode === "other" && (
				<DraftInput
					class="editor-code"
					aria-label="SQL expression that steps have in common"
					value={own}
					onValue={(text) => set({ funnelAggregateByHogQL: text.trim() || undefined })}
				/>
			)}
		</>
	);
}

const stepChoices = (from: number, to: number) =>
	Array.from({ length: Math.max(0, to - from) }, (_, i) => ({ value: String(from + i), label: `Step ${from + i + 1}` }));

function Exclusions(props: FormProps & { steps: number; order: string }) {
	const { query, steps, order } = props;
	const set = inner(props, "funnelsFilter");
	const exclusions = listOf(fieldsOf(query.funnelsFilter).exclusions).map(fieldsOf);
	const change = (next: Fields[]) => set({ exclusions: next.length > 0 ? next : undefined });
	return (
		<Section title="Exclusions">
			{exclusions.map((node, i) => (
				<Exclusion
					key={i}
					node={node}
					at={`funnelsFilter.exclusions.${i}`}
					label={`Exclusion ${i + 1}`}
					steps={steps}
					whole={order === "unordered"}
					onNode={(next) => change(withItem(exclusions, i, next))}
				/>
			))}
			{exclusions.length < 15 && (
				<AddSeries
					label="Add exclusion"
					onAdd={(entity) => change([...exclusions, { ...newSeries(entity), funnelFromStep: 0, funnelToStep: steps - 1 }])}
				/>
			)}
			<MistakeAt field="funnelsFilter.exclusions" />
		</Section>
	);
}

function Exclusion({
	node,
	onNode,
	label,
	at,
	steps,
	whole,
}: {
	node: Fields;
	onNode: (node: Fields | undefined) => void;
	label: string;
	at: string;
	steps: number;
	/** Whether it has to be about all steps. */
	whole: boolean;
}) {
	const [from, to] = [numberOf(node.funnelFromStep) ?? 0, numberOf(node.funnelToStep) ?? steps - 1];
	return (
		<div class="editor-series-row" role="group" aria-label={label}>
			<div class="editor-series-head">
				<Entities node={node} onNode={onNode} label={label} />
				<IconButton label={`Remove ${label}`} small onClick={() => onNode(undefined)}>
					<X size={14} />
				</IconButton>
			</div>
			{!whole && (
				<div class="editor-pair">
					<Select
						aria-label={`${label} after step`}
						value={String(from)}
						choices={stepChoices(0, steps - 1)}
						onValue={(n) => onNode(withFields(node, { funnelFromStep: Number(n), funnelToStep: Math.max(to, Number(n) + 1) }))}
					/>
					<span>to</span>
					<Select
						aria-label={`${label} before step`}
						value={String(to)}
						choices={stepChoices(from + 1, steps)}
						onValue={(n) => onNode(withFields(node, { funnelToStep: Number(n) }))}
					/>
				</div>
			)}
			<FilterGroup
				label={`Filters of ${label}`}
				value={node.properties as Filters}
				events={eventsOf(node)}
				at={`${at}.properties`}
				onValue={(properties) => onNode(withFields(node, { properties: properties ?? [] }))}
			/>
			<MistakeAt field={at} />
		</div>
	);
}

function Attribution(props: FormProps & { steps: number; order: string }) {
	const { query, steps, order } = props;
	const filter = fieldsOf(query.funnelsFilter);
	const set = inner(props, "funnelsFilter");
	if (breakdownsOf(fieldsOf(query.breakdownFilter)).length === 0 && filter.breakdownAttributionType === undefined) return null;
	const type = textOf(filter.breakdownAttributionType) || "first_touch";
	return (
		<div class="editor-pair">
			<ChoiceField
				label="Value of"
				value={type}
				choices={[
					{ value: "first_touch", label: "The first event with one" },
					{ value: "last_touch", label: "The last event with one" },
					{ value: "all_events", label: "Every event" },
					{ value: "step", label: "One step" },
				]}
				at="funnelsFilter.breakdownAttributionType"
				onValue={(value) =>
					set({
						breakdownAttributionType: value,
						breakdownAttributionValue: value === "step" ? (filter.breakdownAttributionValue ?? 0) : undefined,
					})
				}
			/>
			{type === "step" && (
				<ChoiceField
					label="Which step"
					value={String(numberOf(filter.breakdownAttributionValue) ?? 0)}
					choices={stepChoices(0, order === "unordered" ? 1 : steps)}
					at="funnelsFilter.breakdownAttributionValue"
					onValue={(n) => set({ breakdownAttributionValue: Number(n) })}
				/>
			)}
		</div>
	);
}

function Chart(props: FormProps & { viz: string; steps: number }) {
	const { query, viz, steps } = props;
	const filter = fieldsOf(query.funnelsFilter);
	const set = inner(props, "funnelsFilter");
	return (
		<Section title="Chart">
			<ChoiceField
				label="Chart type"
				value={viz}
				choices={[
					{ value: "steps", label: "Steps" },
					{ value: "time_to_convert", label: "Time to convert" },
					{ value: "trends", label: "Conversion over time" },
				]}
				at="funnelsFilter.funnelVizType"
				onValue={(value) => set({ funnelVizType: value })}
			/>
			{viz === "steps" && (
				<>
					<ChoiceField
						label="Rates of"
						value={textOf(filter.funnelStepReference) || "total"}
						choices={[
							{ value: "total", label: "The first step" },
							{ value: "previous", label: "The step before" },
						]}
						onValue={(value) => set({ funnelStepReference: value === "total" ? undefined : value })}
					/>
					<ChoiceField
						label="Layout"
						value={textOf(filter.layout) || "vertical"}
						choices={[
							{ value: "vertical", label: "Left to right" },
							{ value: "horizontal", label: "Top to bottom" },
						]}
						onValue={(value) => set({ layout: value === "vertical" ? undefined : value })}
					/>
				</>
			)}
			{viz !== "steps" && viz !== "flow" && <Ends {...props} steps={steps} />}
			{viz === "time_to_convert" && (
				<NumberField
					label="Ranges"
					value={filter.binCount}
					without="automatic"
					min={1}
					max={90}
					at="funnelsFilter.binCount"
					onValue={(n) => set({ binCount: n })}
				/>
			)}
			{viz === "trends" && (
				<>
					<Checkbox
						label="Show values"
						checked={filter.showValuesOnSeries === true}
						onValue={(on) => set({ showValuesOnSeries: on || undefined })}
					/>
					<Checkbox
						label="Leave out incomplete periods"
						checked={filter.hideIncompleteConversionWindowPeriods === true}
						onValue={(on) => set({ hideIncompleteConversionWindowPeriods: on || undefined })}
					/>
				</>
			)}
		</Section>
	);
}

/** The steps that times to convert and rates over time are about. */
function Ends(props: FormProps & { steps: number }) {
	const { query, steps } = props;
	const filter = fieldsOf(query.funnelsFilter);
	const set = inner(props, "funnelsFilter");
	const from = numberOf(filter.funnelFromStep) ?? 0;
	const to = numberOf(filter.funnelToStep) ?? steps - 1;
	return (
		<div class="editor-pair">
			<ChoiceField
				label="From"
				value={String(from)}
				choices={stepChoices(0, steps - 1)}
				at="funnelsFilter.funnelFromStep"
				onValue={(n) => set({ funnelFromStep: Number(n), funnelToStep: Math.max(to, Number(n) + 1) })}
			/>
			<ChoiceField
				label="To"
				value={String(to)}
				choices={stepChoices(from + 1, steps)}
				at="funnelsFilter.funnelToStep"
				onValue={(n) => set({ funnelToStep: Number(n) })}
			/>
		</div>
	);
}
