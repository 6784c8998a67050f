import { Select } from "../ui/basics";
import { type FormProps, inner } from "./form";
import { NumberInput } from "./inputs";
import { fieldsOf, listOf, numberOf, textOf, withFields } from "./json";
import {
	ChoiceField,
	CompareField,
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
import { SeriesList } from "./series-list";

/** The fields of a StickinessQuery. */
export function StickinessForm(props: FormProps) {
	const { query, change, groups } = props;
	const filter = fieldsOf(query.stickinessFilter);
	const set = inner(props, "stickinessFilter");
	return (
		<>
			<Section title="Series">
				<SeriesList
					series={listOf(query.series).map(fieldsOf)}
					onSeries={(series) => change({ series })}
					noun="Series"
					letters
					maths="StickinessQuery"
					groups={groups}
				/>
				<Criteria {...props} />
				<ChoiceField
					label="Show those active in"
					value={textOf(filter.computedAs) || "non_cumulative"}
					choices={[
						{ value: "non_cumulative", label: "Exactly this many intervals" },
						{ value: "cumulative", label: "At least this many intervals" },
					]}
					at="stickinessFilter.computedAs"
					onValue={(value) => set({ computedAs: value === "non_cumulative" ? undefined : value })}
				/>
			</Section>
			<FiltersSection {...props} />
			<DatesSection {...props}>
				<NumberField
					label="Combine intervals"
					value={query.intervalCount}
					without={1}
					min={1}
					max={365}
					at="intervalCount"
					onValue={(n) => change({ intervalCount: n })}
				/>
				<CompareField {...props} />
			</DatesSection>
			<Section title="Chart">
				<ChoiceField
					label="Chart type"
					value={textOf(filter.display) || "ActionsLineGraph"}
					choices={[
						{ value: "ActionsLineGraph", label: "Line" },
						{ value: "ActionsBar", label: "Bars" },
						{ value: "ActionsAreaGraph", label: "Area" },
					]}
					onValue={(display) => set({ display })}
				/>
			</Section>
			<More title="More" open={usesMoreDates(query) || query.samplingFactor !== undefined}>
				<MoreDates {...props} />
				<SamplingField {...props} />
			</More>
		</>
	);
}

/** How many events make an interval active. */
function Criteria(props: FormProps) {
	const criteria = fieldsOf(fieldsOf(props.query.stickinessFilter).stickinessCriteria);
	const set = (changes: Record<string, unknown>) =>
		inner(props, "stickinessFilter")({ stickinessCriteria: withFields({ operator: "gte", value: 1, ...criteria }, changes) });
	return (
		<Labelled label="An interval counts if it has" at="stickinessFilter.stickinessCriteria">
			{(id) => (
				<div class="editor-pair">
					<Select
						aria-label="How the number of events is compared"
						value={textOf(criteria.operator) || "gte"}
						choices={[
							{ value: "gte", label: "at least" },
							{ value: "lte", label: "at most" },
							{ value: "exact", label: "exactly" },
						]}
						onValue={(operator) => set({ operator })}
					/>
					<NumberInput id={id} min={1} value={numberOf(criteria.value)} placeholder="1" onValue={(n) => set({ value: n ?? 1 })} />
					<span>events</span>
				</div>
			)}
		</Labelled>
	);
}
