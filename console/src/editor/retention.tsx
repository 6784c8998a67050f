import { Checkbox } from "../ui/basics";
import { BreakdownEditor } from "./breakdown-editor";
import { EventPicker } from "./event-picker";
import { FilterGroup } from "./filter-group";
import type { Filters } from "./filters";
import { type FormProps, inner } from "./form";
import { DraftInput } from "./inputs";
import { fieldsOf, listOf, numberOf, textOf, withFields } from "./json";
import { MistakeAt } from "./mistakes";
import { PropertyPicker } from "./property-picker";
import { ActorField, ChoiceField, DatesSection, FiltersSection, Labelled, More, NumberField, SamplingField, Section } from "./sections";
import { retentionEntity, withRetentionEntity } from "./series";

/** The fields of a RetentionQuery. */
export function RetentionForm(props: FormProps) {
	const { query, change } = props;
	const filter = fieldsOf(query.retentionFilter);
	const set = inner(props, "retentionFilter");
	return (
		<>
			<Section title="Events">
				<Entity {...props} name="targetEntity" label="Who did" />
				<ChoiceField
					label="Which time"
					value={textOf(filter.retentionType) || "retention_recurring"}
					choices={[
						{ value: "retention_recurring", label: "In each period" },
						{ value: "retention_first_time", label: "For the first time" },
						{ value: "retention_first_ever_occurrence", label: "For the first time, whatever the filters" },
					]}
					at="retentionFilter.retentionType"
					onValue={(value) => set({ retentionType: value })}
				/>
				<Entity {...props} name="returningEntity" label="And came back with" />
				<ActorField {...props} />
			</Section>
			<Section title="Periods">
				<div class="editor-pair">
					<ChoiceField
						label="Period"
						value={textOf(filter.period) || "Day"}
						choices={["Hour", "Day", "Week", "Month"].map((value) => ({ value, label: value }))}
						at="retentionFilter.period"
						onValue={(value) => set({ period: value })}
					/>
					<NumberField
						label="How many"
						value={filter.totalIntervals}
						without={8}
						min={1}
						max={1000}
						at="retentionFilter.totalIntervals"
						onValue={(n) => set({ totalIntervals: n })}
					/>
				</div>
			</Section>
			<FiltersSection {...props} />
			<Section title="Breakdown">
				<BreakdownEditor
					filter={fieldsOf(query.breakdownFilter)}
					most={1}
					extended={false}
					onFilter={(next) => change({ breakdownFilter: next })}
				/>
			</Section>
			<DatesSection {...props} interval={false} />
			<Counting {...props} />
			<Chart {...props} />
		</>
	);
}

function Entity({ name, label, ...props }: FormProps & { name: string; label: string }) {
	const filter = fieldsOf(props.query.retentionFilter);
	const node = filter[name];
	const set = inner(props, "retentionFilter");
	const entity = retentionEntity(node);
	return (
		<div class="editor-series-row" role="group" aria-label={label}>
			<Labelled label={label} at={`retentionFilter.${name}`}>
				{(id) => <EventPicker id={id} label={label} value={entity} onValue={(next) => set({ [name]: withRetentionEntity(node, next) })} />}
			</Labelled>
			<FilterGroup
				label={`Filters of ${label.toLowerCase()}`}
				value={fieldsOf(node).properties as Filters}
				events={"event" in entity && entity.event ? [entity.event] : []}
				at={`retentionFilter.${name}.properties`}
				onValue={(properties) => set({ [name]: withFields(withRetentionEntity(node, entity), { properties: properties ?? [] }) })}
			/>
		</div>
	);
}

/** What makes a return, and what else is added up. */
function Counting(props: FormProps) {
	const { query } = props;
	const filter = fieldsOf(query.retentionFilter);
	const set = inner(props, "retentionFilter");
	const rolling = filter.timeWindowMode === "24_hour_windows";
	const values = textOf(filter.aggregationType) || "count";
	const brackets = listOf(filter.retentionCustomBrackets);
	const open =
		rolling ||
		values !== "count" ||
		brackets.length > 0 ||
		filter.cumulative === true ||
		(numberOf(filter.minimumOccurrences) ?? 1) > 1 ||
		query.samplingFactor !== undefined;
	return (
		<More title="Counting" open={open}>
			<Checkbox
				label="Count people up to their last return"
				checked={filter.cumulative === true}
				disabled={filter.cumulative !== true && (rolling || values !== "count")}
				onValue={(on) => set({ cumulative: on || undefined })}
			/>
			<MistakeAt field="retentionFilter.cumulative" />
			<Checkbox
				label="Periods begin with each person's own start"
				checked={rolling}
				disabled={!rolling && (filter.cumulative === true || values !== "count")}
				onValue={(on) => set({ timeWindowMode: on ? "24_hour_windows" : undefined })}
			/>
			{!rolling && (
				<NumberField
					label="Events needed to count as a return"
					value={filter.minimumOccurrences}
					without={1}
					min={1}
					at="retentionFilter.minimumOccurrences"
					onValue={(n) => set({ minimumOccurrences: n })}
				/>
			)}
			<Labelled label="Combine periods" at="retentionFilter.retentionCustomBrackets" hint="The length of each column, such as 1, 3, 7.">
				{(id) => (
					<DraftInput
						id={id}
						inputMode="numeric"
						value={brackets.join(", ")}
						onValue={(text) => {
							const sizes = (text.match(/\d+/g) ?? []).map(Number);
							set({ retentionCustomBrackets: sizes.length > 0 ? sizes : undefined });
						}}
					/>
				)}
			</Labelled>
			<ChoiceField
				label="Also add up"
				value={values}
				choices={[
					{ value: "count", label: "Nothing" },
					{ value: "sum", label: "The sum of a property", disabled: rolling || filter.cumulative === true },
					{ value: "avg", label: "The average of a property", disabled: rolling || filter.cumulative === true },
				]}
				at="retentionFilter.aggregationType"
				onValue={(value) => set({ aggregationType: value === "count" ? undefined : value })}
			/>
			{values !== "count" && (
				<PropertyPicker
					label="Property to add up"
					value={
						textOf(filter.aggregationProperty)
							? { type: textOf(filter.aggregationPropertyType) || "event", key: textOf(filter.aggregationProperty) }
							: null
					}
					types={["event", "person"]}
					numeric
					onValue={(p) => set({ aggregationProperty: p.key, aggregationPropertyType: p.type === "person" ? "person" : undefined })}
				/>
			)}
			<SamplingField {...props} />
		</More>
	);
}

function Chart(props: FormProps) {
	const filter = fieldsOf(props.query.retentionFilter);
	const set = inner(props, "retentionFilter");
	return (
		<Section title="Chart">
			<div class="editor-pair">
				<ChoiceField
					label="Rates of"
					value={textOf(filter.retentionReference) || "total"}
					choices={[
						{ value: "total", label: "The first period" },
						{ value: "previous", label: "The period before" },
					]}
					onValue={(value) => set({ retentionReference: value === "total" ? undefined : value })}
				/>
				<ChoiceField
					label="Average"
					value={textOf(filter.meanRetentionCalculation) || "simple"}
					choices={[
						{ value: "simple", label: "Simple" },
						{ value: "weighted", label: "By size" },
						{ value: "none", label: "None" },
					]}
					onValue={(value) => set({ meanRetentionCalculation: value })}
				/>
			</div>
		</Section>
	);
}
