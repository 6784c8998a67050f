import { Checkbox } from "../ui/basics";
import { type FormProps, inner } from "./form";
import { fieldsOf, listOf } from "./json";
import { ActorField, DatesSection, FiltersSection, More, SamplingField, Section } from "./sections";
import { SeriesList } from "./series-list";

const statuses = [
	{ value: "new", label: "New" },
	{ value: "returning", label: "Returning" },
	{ value: "resurrecting", label: "Resurrecting" },
	{ value: "dormant", label: "Dormant" },
];

/** The fields of a LifecycleQuery. */
export function LifecycleForm(props: FormProps) {
	const { query, change, groups } = props;
	const filter = fieldsOf(query.lifecycleFilter);
	const set = inner(props, "lifecycleFilter");
	const all = statuses.map((s) => s.value);
	const shown = Array.isArray(filter.toggledLifecycles) ? listOf(filter.toggledLifecycles).map(String) : all;
	const series = listOf(query.series).map(fieldsOf);
	return (
		<>
			<Section title="Series">
				<SeriesList
					series={series}
					onSeries={(next) => change({ series: next })}
					noun="Series"
					groups={groups}
					most={Math.max(1, series.length)}
				/>
				{series.length > 1 && <p class="hint">An event has to match all series.</p>}
				<ActorField {...props} />
			</Section>
			<FiltersSection {...props} />
			<DatesSection {...props} />
			<Section title="Chart">
				<fieldset class="editor-stack">
					<legend class="hint">Show</legend>
					{statuses.map((s) => (
						<Checkbox
							key={s.value}
							label={s.label}
							checked={shown.includes(s.value)}
							onValue={(on) => {
								const next = all.filter((v) => (v === s.value ? on : shown.includes(v)));
								set({ toggledLifecycles: next.length === all.length ? undefined : next });
							}}
						/>
					))}
				</fieldset>
			</Section>
			<More title="More" open={query.samplingFactor !== undefined}>
				<SamplingField {...props} />
			</More>
		</>
	);
}
