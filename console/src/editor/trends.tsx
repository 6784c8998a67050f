import { Plus, X } from "lucide-preact";
import { useState } from "preact/hooks";
import { Button, Checkbox, IconButton } from "../ui/basics";
import { BreakdownEditor } from "./breakdown-editor";
import { isHistogram } from "./breakdowns";
import { displaysFor, isScaled, switched, switchesOf, totals } from "./displays";
import { type FormProps, inner } from "./form";
import { Focused } from "./filter-group";
import { formulasOf, mistakeIn, withFormulas } from "./formulas";
import { DraftInput } from "./inputs";
import { type Fields, fieldsOf, listOf, textOf, withFields, withItem } from "./json";
import { MistakeAt } from "./mistakes";
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
import { letterOf } from "./series";
import { SeriesList } from "./series-list";

/** The fields of a TrendsQuery. */
export function TrendsForm(props: FormProps) {
	const { query, change, groups } = props;
	const series = listOf(query.series).map(fieldsOf);
	const filter = fieldsOf(query.trendsFilter);
	const display = textOf(filter.display) || "ActionsLineGraph";
	const split = fieldsOf(query.breakdownFilter);
	const box = display === "BoxPlot";
	return (
		<>
			<Section title="Series">
				<SeriesList
					series={series}
					onSeries={(next) => change({ series: next })}
					noun="Series"
					letters
					maths="TrendsQuery"
					groups={groups}
					property={box}
					histogram={isHistogram(split)}
				/>
				{!box && <Formulas filter={filter} count={series.length} onFilter={(next) => change({ trendsFilter: next })} />}
			</Section>
			<FiltersSection {...props} />
			{!box && (
				<Section title="Breakdown">
					<BreakdownEditor filter={split} onFilter={(next) => change({ breakdownFilter: next })} />
				</Section>
			)}
			<DatesSection {...props} interval={!totals.includes(display)}>
				{!box && <CompareField {...props} />}
			</DatesSection>
			<Display {...props} display={display} />
			<More title="More" open={usesMoreDates(query) || query.samplingFactor !== undefined || filter.smoothingIntervals !== undefined}>
				<MoreDates {...props} />
				{!totals.includes(display) && !box && <Smoothing {...props} />}
				<SamplingField {...props} />
			</More>
		</>
	);
}

function Display(props: FormProps & { display: string }) {
	const { query, display } = props;
	const filter = fieldsOf(query.trendsFilter);
	const set = inner(props, "trendsFilter");
	const choices = displaysFor(display);
	return (
		<Section title="Chart">
			<Labelled label="Chart type" at="trendsFilter.display">
				{(id) => (
					<select id={id} value={display} onChange={(event) => set({ display: event.currentTarget.value })}>
						{["Over time", "Total value"].map((under) => (
							<optgroup key={under} label={under}>
								{choices
									.filter((d) => d.under === under)
									.map((d) => (
										<option key={d.value} value={d.value}>
											{d.label}
										</option>
									))}
							</optgroup>
						))}
					</select>
				)}
			</Labelled>
			<ChoiceField
				label="Values as"
				value={textOf(filter.aggregationAxisFormat) || "numeric"}
				choices={[
					{ value: "numeric", label: "Numbers" },
					{ value: "short", label: "Short numbers (12.3K)" },
					{ value: "percentage", label: "Percentages (12 is 12%)" },
					{ value: "percentage_scaled", label: "Percentages (0.12 is 12%)" },
					{ value: "duration", label: "Time, from seconds" },
					{ value: "duration_ms", label: "Time, from milliseconds" },
					{ value: "currency", label: "Currency" },
				]}
				onValue={(format) => set({ aggregationAxisFormat: format === "numeric" ? undefined : format })}
			/>
			<More title="Labels and axis">
				<div class="editor-pair">
					<TextField label="Before values" value={filter.aggregationAxisPrefix} onValue={(text) => set({ aggregationAxisPrefix: text })} />
					<TextField label="After values" value={filter.aggregationAxisPostfix} onValue={(text) => set({ aggregationAxisPostfix: text })} />
				</div>
				<NumberField
					label="Decimal places"
					value={filter.decimalPlaces}
					min={0}
					max={10}
					at="trendsFilter.decimalPlaces"
					onValue={(n) => set({ decimalPlaces: n })}
				/>
				{isScaled(display) && (
					<ChoiceField
						label="Scale"
						value={textOf(filter.yAxisScaleType) || "linear"}
						choices={[
							{ value: "linear", label: "Linear" },
							{ value: "log10", label: "Logarithmic" },
						]}
						onValue={(scale) => set({ yAxisScaleType: scale === "linear" ? undefined : scale })}
					/>
				)}
				{switchesOf(query, display).map(({ name, label, usual }) => (
					<Checkbox
						key={name}
						label={label}
						checked={typeof filter[name] === "boolean" ? filter[name] : usual}
						onValue={(on) => set({ [name]: switched(on, usual) })}
					/>
				))}
			</More>
		</Section>
	);
}

function TextField({ label, value, onValue }: { label: string; value: unknown; onValue: (text: string | undefined) => void }) {
	return (
		<Labelled label={label}>{(id) => <DraftInput id={id} value={textOf(value)} onValue={(text) => onValue(text || undefined)} />}</Labelled>
	);
}

function Smoothing(props: FormProps) {
	const filter = fieldsOf(props.query.trendsFilter);
	const days = listOf(fieldsOf(props.query.dateRange).daysOfWeek).length > 0;
	if (days && filter.smoothingIntervals === undefined) return null;
	return (
		<NumberField
			label="Smooth over"
			hint="Each point is the average of this many intervals."
			value={filter.smoothingIntervals}
			without={1}
			min={1}
			max={1000}
			at="trendsFilter.smoothingIntervals"
			onValue={(n) => inner(props, "trendsFilter")({ smoothingIntervals: n })}
		/>
	);
}

function Formulas({ filter, count, onFilter }: { filter: Fields; count: number; onFilter: (filter: Fields) => void }) {
	const [adding, setAdding] = useState(false);
	const formulas = formulasOf(filter);
	const letters = Array.from({ length: count }, (_, i) => letterOf(i));
	const set = (next: Fields[]) => onFilter(withFormulas(filter, next));
	const field =
		textOf(filter.formula) && !filter.formulaNodes && !filter.formulas ? "formula" : filter.formulaNodes ? "formulaNodes" : "formulas";
	return (
		<div class="editor-stack">
			{formulas.map((node, i) => (
				<div key={i} class="editor-stack" role="group" aria-label={`Formula ${i + 1}`}>
					<div class="editor-pair">
						<DraftInput
							class="editor-code"
							aria-label={`Formula ${i + 1}`}
							value={textOf(node.formula)}
							onValue={(text) => set(withItem(formulas, i, text.trim() ? withFields(node, { formula: text }) : undefined))}
						/>
						<DraftInput
							aria-label={`Name of formula ${i + 1}`}
							placeholder="Name"
							value={textOf(node.custom_name)}
							onValue={(text) => set(withItem(formulas, i, withFields(node, { custom_name: text.trim() || undefined })))}
						/>
						<IconButton label={`Remove formula ${i + 1}`} small onClick={() => set(withItem(formulas, i, undefined))}>
							<X size={14} />
						</IconButton>
					</div>
					{mistakeIn(textOf(node.formula), letters) && <p class="mistake">{mistakeIn(textOf(node.formula), letters)}</p>}
					<MistakeAt field={field === "formula" ? "trendsFilter.formula" : `trendsFilter.${field}.${i}`} />
				</div>
			))}
			{adding ? (
				<Focused onLeave={() => setAdding(false)}>
					<DraftInput
						class="editor-code"
						aria-label="New formula"
						placeholder={letters.length > 1 ? "A / B * 100" : "A * 2"}
						value=""
						onValue={(text) => {
							setAdding(false);
							if (text.trim()) set([...formulas, { formula: text.trim() }]);
						}}
					/>
				</Focused>
			) : (
				<div class="editor-adds">
					<Button small look="quiet" icon={<Plus size={14} />} onClick={() => setAdding(true)}>
						Add formula
					</Button>
				</div>
			)}
		</div>
	);
}
