import { useState } from "preact/hooks";
import { clock, projectZone } from "../data/time";
import { Checkbox, Select } from "../ui/basics";
import {
	type DateRangeFields,
	fits,
	lastDay,
	modeOf,
	presetOf,
	presets,
	type RangeMode,
	readRelative,
	setTimes,
	startOf,
	units,
	withDays,
	withEnds,
	withTimes,
} from "./dates";
import { DraftInput, NumberInput } from "./inputs";
import { textOf } from "./json";
import { MistakeAt } from "./mistakes";

interface DateRangeProps {
	/** What the field is called, for screen readers. Default: "Date range". */
	label?: string;
	/** A dateRange of a query; nothing means the last 7 days. Fields that it does not know are kept. */
	value: DateRangeFields | null | undefined;
	onValue: (value: DateRangeFields) => void;
	/** Whether "All time" is offered. Default: yes. */
	all?: boolean;
	/** The place of the range in the query, for mistakes. */
	at?: string;
	/** What the choice without dates says, such as "As each insight says" on a dashboard. */
	none?: string;
}

/** A date range: one with a name, the last so many units, from day to day, or relative dates as text. */
export function DateRange({ label = "Date range", value, onValue, all = true, at, none }: DateRangeProps) {
	const range = value ?? {};
	const [chosen, setChosen] = useState<RangeMode | null>(null);
	const mode = chosen && fits(range, chosen) ? chosen : modeOf(range);
	const choices = [
		...presets
			.filter((p) => all || p.from !== "all" || presetOf(range)?.id === "all")
			.map((p) => ({ value: p.id, label: p.id === "default" && none ? none : p.label })),
		{ value: "relative", label: "Last…" },
		{ value: "absolute", label: "Between two dates…" },
		{ value: "text", label: "Relative dates…" },
	];
	const choose = (id: string) => {
		const preset = presets.find((p) => p.id === id);
		if (preset) {
			setChosen(null);
			onValue({ ...withEnds(range, preset.from, preset.to), ...(range.explicitDate === true && { explicitDate: false }) });
			return;
		}
		const next = startOf(id as RangeMode, range, clock(new Date().toISOString(), projectZone()).slice(0, 10));
		setChosen(id as RangeMode);
		if (next !== range) onValue(next);
	};
	return (
		<div class="editor-dates">
			<Select aria-label={label} value={mode === "preset" ? (presetOf(range)?.id ?? "default") : mode} choices={choices} onValue={choose} />
			{mode === "relative" && <Relative range={range} onValue={onValue} />}
			{mode === "absolute" && <Absolute range={range} onValue={onValue} />}
			{mode === "text" && <AsText range={range} onValue={onValue} />}
			<MistakeAt field={at} />
		</div>
	);
}

interface EndsProps {
	range: DateRangeFields;
	onValue: (value: DateRangeFields) => void;
}

function Relative({ range, onValue }: EndsProps) {
	const ago = readRelative(textOf(range.date_from)) ?? { count: 30, unit: "d" };
	return (
		<div class="editor-pair">
			<NumberInput
				aria-label="How many"
				min={1}
				max={99999}
				value={ago.count}
				onValue={(n) => onValue(withEnds(range, `-${n ?? 1}${ago.unit}`, null))}
			/>
			<Select
				aria-label="Unit"
				value={ago.unit}
				choices={units}
				onValue={(unit) => onValue(withEnds(range, `-${ago.count}${unit}`, null))}
			/>
		</div>
	);
}

function Absolute({ range, onValue }: EndsProps) {
	const timed = withTimes(range);
	const type = timed ? "datetime-local" : "date";
	const [from, to] = [textOf(range.date_from), lastDay(textOf(range.date_to))];
	const set = (nextFrom: string, nextTo: string) =>
		onValue(timed ? withEnds(range, nextFrom, nextTo || null) : withDays(range, nextFrom, nextTo));
	return (
		<>
			<div class="editor-pair">
				<DraftInput
					type={type}
					aria-label="From"
					value={from.replace(" ", "T")}
					onValue={(v) => {
						if (v) set(v, to);
					}}
				/>
				<span>to</span>
				<DraftInput type={type} aria-label="To" value={to.replace(" ", "T")} onValue={(v) => set(from, v)} />
			</div>
			<Checkbox label="With times of day" checked={timed} onValue={(on) => onValue(setTimes(range, on))} />
		</>
	);
}

function AsText({ range, onValue }: EndsProps) {
	const [from, to] = [textOf(range.date_from), textOf(range.date_to)];
	return (
		<>
			<div class="editor-pair">
				<DraftInput aria-label="From" placeholder="-7d" value={from} onValue={(v) => onValue(withEnds(range, v || null, to || null))} />
				<span>to</span>
				<DraftInput aria-label="To" placeholder="now" value={to} onValue={(v) => onValue(withEnds(range, from || null, v || null))} />
			</div>
			<p class="hint">Such as -7d, -1mStart, -1mEnd, dStart, or 2026-01-31.</p>
		</>
	);
}
