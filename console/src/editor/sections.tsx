import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Checkbox, Field, Select } from "../ui/basics";
import { DateRange } from "./date-range";
import { intervals, tooFine, withWholeDays } from "./dates";
import { FilterGroup } from "./filter-group";
import { countFilters, type Filters } from "./filters";
import type { Change, FormProps } from "./form";
import { NumberInput } from "./inputs";
import { fieldsOf, listOf, numberOf, textOf, withFields } from "./json";
import { useMistake } from "./mistakes";

/** A part of the editor with a title. */
export function Section({ title, children, aside }: { title: string; children: ComponentChildren; aside?: ComponentChildren }) {
	return (
		<section class="editor-section" aria-label={title}>
			<header class="editor-section-head">
				<h2>{title}</h2>
				{aside}
			</header>
			{children}
		</section>
	);
}

/** A part of the editor that is seldom needed. `open` says whether it is open at first. What is closed shows no mistakes. */
export function More({ title, open = false, children }: { title: string; open?: boolean; children: ComponentChildren }) {
	const [shown, setShown] = useState(open);
	return (
		<details class="editor-more" open={shown} onToggle={(event) => setShown(event.currentTarget.open)}>
			<summary>{title}</summary>
			{shown && <div class="editor-stack">{children}</div>}
		</details>
	);
}

/** A labelled control of the editor, with what the server says is wrong with it. */
export function Labelled({
	label,
	at,
	hint,
	children,
}: {
	label: string;
	/** The place in the query, for mistakes. */
	at?: string;
	hint?: string;
	children: (id: string) => ComponentChildren;
}) {
	return (
		<Field label={label} hint={hint} error={useMistake(at)}>
			{children}
		</Field>
	);
}

/** A number that has a default. */
export function NumberField({
	label,
	value,
	without,
	onValue,
	at,
	hint,
	...bounds
}: {
	label: string;
	value: unknown;
	/** What counts when it is empty. */
	without?: number | string;
	onValue: (value: number | undefined) => void;
	at?: string;
	hint?: string;
	min?: number;
	max?: number;
}) {
	return (
		<Labelled label={label} at={at} hint={hint}>
			{(id) => (
				<NumberInput
					id={id}
					{...bounds}
					value={numberOf(value)}
					placeholder={without === undefined ? undefined : String(without)}
					onValue={onValue}
				/>
			)}
		</Labelled>
	);
}

/** One of a few values. The one that a query has is kept even if it is not offered. */
export function ChoiceField<T extends string>({
	label,
	value,
	choices,
	onValue,
	at,
	hint,
}: {
	label: string;
	value: T;
	choices: readonly { value: T; label: string; disabled?: boolean }[];
	onValue: (value: T) => void;
	at?: string;
	hint?: string;
}) {
	const shown = choices.some((c) => c.value === value) ? choices : [...choices, { value, label: value }];
	return (
		<Labelled label={label} at={at} hint={hint}>
			{(id) => <Select id={id} value={value} choices={shown} onValue={onValue} />}
		</Labelled>
	);
}

/** The dates of an insight, and the interval of those that have one. */
export function DatesSection({
	query,
	change,
	interval = true,
	children,
}: FormProps & { interval?: boolean; children?: ComponentChildren }) {
	const range = fieldsOf(query.dateRange);
	const setInterval = (value: string) => {
		const whole = withWholeDays(range, value);
		change({ interval: value, ...(whole !== range && { dateRange: whole }) });
	};
	return (
		<Section title="Dates">
			<DateRange value={range} at="dateRange" onValue={(dateRange) => change({ dateRange })} />
			{interval && (
				<ChoiceField
					label="Interval"
					value={textOf(query.interval) || "day"}
					choices={intervals.map((i) => ({ ...i, disabled: tooFine(range, i.value) }))}
					at="interval"
					onValue={setInterval}
				/>
			)}
			{children}
		</Section>
	);
}

const weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** What is seldom changed of dates. */
export function MoreDates({ query, change }: FormProps) {
	const range = fieldsOf(query.dateRange);
	const days = listOf(range.daysOfWeek).map(Number);
	const set = (changes: Record<string, unknown>) => change({ dateRange: withFields(range, changes) });
	return (
		<>
			<Checkbox
				label="Leave out incomplete periods"
				checked={range.excludeIncompletePeriods === true}
				onValue={(on) => set({ excludeIncompletePeriods: on || undefined })}
			/>
			<fieldset class="editor-days">
				<legend>Only on</legend>
				{weekdays.map((name, i) => (
					<Checkbox
						key={name}
						label={<abbr title={name}>{name.slice(0, 2)}</abbr>}
						checked={days.includes(i + 1)}
						onValue={(on) => {
							const next = on ? [...days, i + 1].toSorted((a, b) => a - b) : days.filter((d) => d !== i + 1);
							set({ daysOfWeek: next.length > 0 ? next : undefined });
						}}
					/>
				))}
			</fieldset>
		</>
	);
}

/** Reports whether a query uses what MoreDates offers. */
export const usesMoreDates = (query: Record<string, unknown>): boolean => {
	const range = fieldsOf(query.dateRange);
	return range.excludeIncompletePeriods === true || listOf(range.daysOfWeek).length > 0;
};

/** The filters on all events of an insight. */
export function FiltersSection({ query, change }: FormProps) {
	const filters = query.properties as Filters;
	const count = countFilters(filters);
	return (
		<Section title="Filters" aside={count > 1 ? <span class="hint">{count}</span> : undefined}>
			<FilterGroup
				label="Filters"
				value={filters}
				groups
				at="properties"
				onValue={(properties) => change({ properties: properties ?? [] })}
			/>
			<Checkbox
				label="Leave out test accounts"
				checked={query.filterTestAccounts === true}
				onValue={(on) => change({ filterTestAccounts: on || undefined })}
			/>
		</Section>
	);
}

/** How many of the people are looked at. */
export function SamplingField({ query, change }: FormProps) {
	const own = numberOf(query.samplingFactor);
	const shares = [1, 0.5, 0.25, 0.1, 0.05, 0.01];
	const value = own === null || own === 0 ? "1" : String(own);
	return (
		<ChoiceField
			label="Sample"
			value={value}
			at="samplingFactor"
			choices={[...new Set([...shares, Number(value)])].map((n) => ({
				value: String(n),
				label: n === 1 ? "All people" : `${+(n * 100).toFixed(4)}% of people`,
			}))}
			onValue={(n) => change({ samplingFactor: n === "1" ? undefined : Number(n) })}
		/>
	);
}

/** What is counted as one: people, or the groups of a type. */
export function ActorField({ query, change, groups }: FormProps) {
	const own = numberOf(query.aggregation_group_type_index);
	if (groups.length === 0 && own === null) return null;
	const choices = [{ value: "", label: "People" }, ...groups.map((g) => ({ value: String(g.index), label: g.name }))];
	if (own !== null && !groups.some((g) => g.index === own)) choices.push({ value: String(own), label: `Groups of type ${own}` });
	return (
		<ChoiceField
			label="Count"
			value={own === null ? "" : String(own)}
			choices={choices}
			at="aggregation_group_type_index"
			onValue={(index) => change({ aggregation_group_type_index: index === "" ? undefined : Number(index) })}
		/>
	);
}

/** Whether a trend or a stickiness is compared with another period. */
export function CompareField({ query, change }: FormProps) {
	const filter = fieldsOf(query.compareFilter);
	const all = textOf(fieldsOf(query.dateRange).date_from) === "all";
	const value = filter.compare === true ? textOf(filter.compare_to) || "previous" : "";
	const choices = [
		{ value: "", label: "Nothing" },
		{ value: "previous", label: "The previous period", disabled: all },
		{ value: "-1d", label: "1 day earlier", disabled: all },
		{ value: "-1w", label: "1 week earlier", disabled: all },
		{ value: "-1m", label: "1 month earlier", disabled: all },
		{ value: "-1q", label: "1 quarter earlier", disabled: all },
		{ value: "-1y", label: "1 year earlier", disabled: all },
	];
	const set: Change = (changes) => change({ compareFilter: withFields(filter, changes) });
	return (
		<ChoiceField
			label="Compare with"
			value={value}
			choices={choices}
			at="compareFilter"
			hint={all && value === "" ? "All time cannot be compared." : undefined}
			onValue={(to) => {
				if (to === "") set({ compare: false, compare_to: undefined });
				else set({ compare: true, compare_to: to === "previous" ? undefined : to });
			}}
		/>
	);
}
