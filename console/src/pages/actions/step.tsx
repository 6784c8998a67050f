import { X } from "lucide-preact";
import { EventNameField } from "../../data/fields";
import { PropertyFilters } from "../../data/filters";
import { Field, IconButton, Select, TextInput } from "../../ui/basics";
import { clicked, type Matching, type Step, usual } from "./steps";

const matchings: { value: Matching; label: string }[] = [
	{ value: "contains", label: "contains" },
	{ value: "exact", label: "is exactly" },
	{ value: "regex", label: "matches regex" },
];

/** The fields of one step of an action. */
export function StepEditor({
	step,
	number,
	onStep,
	onRemove,
	disabled,
}: {
	step: Step;
	number: number;
	onStep: (step: Step) => void;
	onRemove?: () => void;
	disabled?: boolean;
}) {
	const set = (changes: Partial<Step>) => onStep({ ...step, ...changes });
	return (
		<section class="actions-step" aria-label={`Step ${number}`}>
			<header>
				<h2>{number === 1 ? "An event matches if" : "or if"}</h2>
				{onRemove && (
					<IconButton label={`Remove step ${number}`} onClick={onRemove}>
						<X size={14} />
					</IconButton>
				)}
			</header>
			<Field label="Event">
				{(id) => <EventNameField id={id} value={step.event ?? ""} onValue={(event) => set({ event: event || null })} disabled={disabled} />}
			</Field>
			{step.event === clicked && (
				<>
					<Field label="Element selector" hint="A CSS selector of the clicked element, or one around it.">
						{(id) => (
							<TextInput
								id={id}
								value={step.selector ?? ""}
								placeholder="form.signup > button"
								disabled={disabled}
								onValue={(selector) => set({ selector: selector || null })}
							/>
						)}
					</Field>
					<Field label="Element name">
						{(id) => (
							<TextInput
								id={id}
								value={step.tag_name ?? ""}
								placeholder="button"
								disabled={disabled}
								onValue={(tag_name) => set({ tag_name: tag_name || null })}
							/>
						)}
					</Field>
					<Matched
						label="Element text"
						value={step.text}
						how={step.text_matching ?? usual.text}
						disabled={disabled}
						onValue={(text, text_matching) => set({ text, text_matching })}
					/>
					<Matched
						label="Link"
						value={step.href}
						how={step.href_matching ?? usual.href}
						disabled={disabled}
						onValue={(href, href_matching) => set({ href, href_matching })}
					/>
				</>
			)}
			<Matched
				label="URL"
				value={step.url}
				how={step.url_matching ?? usual.url}
				disabled={disabled}
				onValue={(url, url_matching) => set({ url, url_matching })}
			/>
			<PropertyFilters
				label="Filters"
				filters={step.properties ?? []}
				events={step.event ? [step.event] : []}
				disabled={disabled}
				onFilters={(properties) => set({ properties: properties.length ? properties : null })}
			/>
		</section>
	);
}

/** A text and how it is compared. An empty one asks for nothing. */
function Matched({
	label,
	value,
	how,
	onValue,
	disabled,
}: {
	label: string;
	value: string | null;
	how: Matching;
	onValue: (value: string | null, how: Matching) => void;
	disabled?: boolean;
}) {
	return (
		<Field label={label}>
			{(id) => (
				<div class="actions-matched">
					<Select
						aria-label={`How ${label} is compared`}
						value={how}
						choices={matchings}
						disabled={disabled}
						onValue={(next) => onValue(value, next)}
					/>
					<TextInput id={id} value={value ?? ""} disabled={disabled} onValue={(text) => onValue(text || null, how)} />
				</div>
			)}
		</Field>
	);
}
