import { Plus, X } from "lucide-preact";
import { Button, Checkbox, IconButton } from "../ui/basics";
import { type FormProps, inner } from "./form";
import { DraftInput } from "./inputs";
import { fieldsOf, listOf, textOf, withFields, withItem } from "./json";
import { MistakeAt } from "./mistakes";
import { DatesSection, FiltersSection, Labelled, More, NumberField, SamplingField, Section } from "./sections";
import { TextList } from "./text-list";
import { eventNames } from "./suggest";

const eventTypes = [
	{ value: "$pageview", label: "Page views" },
	{ value: "$screen", label: "Screens" },
	{ value: "custom_event", label: "Custom events" },
	{ value: "hogql", label: "SQL expression" },
];

/** The fields of a PathsQuery. */
export function PathsForm(props: FormProps) {
	const { query, change } = props;
	const filter = fieldsOf(query.pathsFilter);
	const set = inner(props, "pathsFilter");
	const types = listOf(filter.includeEventTypes).map(String);
	const toggle = (value: string, on: boolean) => {
		const next = on ? [...types, value] : types.filter((t) => t !== value);
		set({
			includeEventTypes: next.length > 0 ? next : undefined,
			...(value === "hogql" && { pathsHogQLExpression: on ? (filter.pathsHogQLExpression ?? "event") : undefined }),
		});
	};
	const funnel = fieldsOf(query.funnelPathsFilter);
	return (
		<>
			<Section title="Steps">
				<fieldset class="editor-stack">
					<legend class="hint">{types.length === 0 ? "All events count. Choose some to count these alone:" : "These events count:"}</legend>
					{eventTypes.map((t) => (
						<Checkbox key={t.value} label={t.label} checked={types.includes(t.value)} onValue={(on) => toggle(t.value, on)} />
					))}
				</fieldset>
				<MistakeAt field="pathsFilter.includeEventTypes" />
				{types.includes("hogql") && (
					<Labelled label="Name of a step" at="pathsFilter.pathsHogQLExpression">
						{(id) => (
							<DraftInput
								id={id}
								class="editor-code"
								value={textOf(filter.pathsHogQLExpression)}
								onValue={(text) => set({ pathsHogQLExpression: text.trim() || "event" })}
							/>
						)}
					</Labelled>
				)}
				<div class="editor-pair">
					<Point label="Start at" name="startPoint" {...props} />
					<Point label="End at" name="endPoint" {...props} />
				</div>
				{Object.keys(funnel).length > 0 && (
					<div class="editor-filter">
						<p class="editor-kept">
							{textOf(funnel.funnelPathType).replaceAll("_", " ")} {String(funnel.funnelStep ?? "")}
						</p>
						<IconButton label="Remove the funnel" small onClick={() => change({ funnelPathsFilter: undefined })}>
							<X size={14} />
						</IconButton>
						<MistakeAt field="funnelPathsFilter" />
					</div>
				)}
			</Section>
			<Section title="Leave out">
				<TextList
					label="Steps to leave out"
					values={listOf(filter.excludeEvents).map(String)}
					suggest={stepNames}
					placeholder="A step to leave out"
					at="pathsFilter.excludeEvents"
					onValues={(values) => set({ excludeEvents: values })}
				/>
				{types.length === 0 && listOf(filter.excludeEvents).length > 0 && (
					<p class="hint">Steps are left out once some kinds of events are chosen above.</p>
				)}
			</Section>
			<FiltersSection {...props} />
			<DatesSection {...props} interval={false} />
			<Section title="Size">
				<div class="editor-pair">
					<NumberField
						label="Steps"
						value={filter.stepLimit}
						without={5}
						min={1}
						max={1000}
						at="pathsFilter.stepLimit"
						onValue={(n) => set({ stepLimit: n })}
					/>
					<NumberField
						label="Most edges"
						value={filter.edgeLimit}
						without={50}
						min={1}
						max={50000}
						at="pathsFilter.edgeLimit"
						onValue={(n) => set({ edgeLimit: n })}
					/>
				</div>
				<div class="editor-pair">
					<NumberField
						label="Edges from"
						value={filter.minEdgeWeight}
						without="any"
						min={0}
						at="pathsFilter.minEdgeWeight"
						onValue={(n) => set({ minEdgeWeight: n })}
					/>
					<NumberField
						label="Edges up to"
						value={filter.maxEdgeWeight}
						without="any"
						min={0}
						at="pathsFilter.maxEdgeWeight"
						onValue={(n) => set({ maxEdgeWeight: n })}
					/>
				</div>
			</Section>
			<Names {...props} />
		</>
	);
}

const stepNames = async (search: string, signal: AbortSignal) => (await eventNames(search, signal)).map((value) => ({ value }));

function Point({ label, name, ...props }: FormProps & { label: string; name: string }) {
	const filter = fieldsOf(props.query.pathsFilter);
	return (
		<Labelled label={label} at={`pathsFilter.${name}`}>
			{(id) => (
				<DraftInput
					id={id}
					placeholder="Any step"
					value={textOf(filter[name])}
					onValue={(text) => inner(props, "pathsFilter")({ [name]: text || undefined })}
				/>
			)}
		</Labelled>
	);
}

/** How the names of steps are made. */
function Names(props: FormProps) {
	const filter = fieldsOf(props.query.pathsFilter);
	const set = inner(props, "pathsFilter");
	const rules = listOf(filter.localPathCleaningFilters).map(fieldsOf);
	const groupings = listOf(filter.pathGroupings).map(String);
	const setRules = (next: Record<string, unknown>[]) => set({ localPathCleaningFilters: next.length > 0 ? next : undefined });
	const open = rules.length > 0 || groupings.length > 0 || filter.pathReplacements === true || props.query.samplingFactor !== undefined;
	return (
		<More title="Names of steps" open={open}>
			<TextList
				label="Wildcards"
				values={groupings}
				placeholder="/docs/*"
				at="pathsFilter.pathGroupings"
				onValues={(values) => set({ pathGroupings: values.length > 0 ? values : undefined })}
			/>
			<p class="hint">Steps that match a wildcard are put together.</p>
			<Checkbox
				label="Clean paths by the project's rules"
				checked={filter.pathReplacements === true}
				onValue={(on) => set({ pathReplacements: on || undefined })}
			/>
			{rules.map((rule, i) => (
				<div key={i} class="editor-stack" role="group" aria-label={`Rule ${i + 1}`}>
					<div class="editor-pair">
						<DraftInput
							class="editor-code"
							aria-label={`Pattern of rule ${i + 1}`}
							value={textOf(rule.regex)}
							onValue={(text) => setRules(withItem(rules, i, text ? withFields(rule, { regex: text }) : undefined))}
						/>
						<span>becomes</span>
						<DraftInput
							aria-label={`Name of rule ${i + 1}`}
							value={textOf(rule.alias)}
							onValue={(text) => setRules(withItem(rules, i, withFields(rule, { alias: text })))}
						/>
						<IconButton label={`Remove rule ${i + 1}`} small onClick={() => setRules(withItem(rules, i, undefined))}>
							<X size={14} />
						</IconButton>
					</div>
					<MistakeAt field={`pathsFilter.localPathCleaningFilters.${i}`} />
				</div>
			))}
			<div class="editor-adds">
				<Button small look="quiet" icon={<Plus size={14} />} onClick={() => setRules([...rules, { regex: "\\?.*", alias: "" }])}>
					Add rule
				</Button>
			</div>
			<SamplingField {...props} />
		</More>
	);
}
