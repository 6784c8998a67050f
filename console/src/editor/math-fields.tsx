import { useId } from "preact/hooks";
import { DraftInput } from "./inputs";
import { type Fields, textOf, withFields } from "./json";
import { type GroupKind, type Math, type MathKind, mathOf, mathProperty, mathsFor, needOf, withMath, withMathProperty } from "./maths";
import { useMistake } from "./mistakes";
import { PropertyPicker } from "./property-picker";

interface MathFieldsProps {
	/** The series, for screen readers. */
	name: string;
	node: Fields;
	onNode: (node: Fields) => void;
	kind: MathKind;
	groups: readonly GroupKind[];
	at: string;
	/** The events whose properties are offered. */
	events: readonly string[];
	/** Whether the property counts whatever the math, as in box plots. */
	property?: boolean;
	/** Whether the numbers are put into ranges by a breakdown: quantiles of properties do not go with them. */
	histogram?: boolean;
}

const quantiles = ["median", "p75", "p90", "p95", "p99"];

/** How the events of a series become a number, and the property or expression that this needs. */
export function MathFields({ name, node, onNode, kind, groups, at, events, property, histogram }: MathFieldsProps) {
	const own = mathOf(node, kind);
	const maths = mathsFor(node, kind, groups).filter((m) => m.id === own || !histogram || !quantiles.includes(m.id));
	const needs = property ? "property" : needOf(node, kind);
	const errors = useMistakes(at, ["math", "math_property", "math_hogql", "math_group_type_index", "math_property_type"]);
	return (
		<>
			<div class="editor-math">
				{!property && (
					<MathSelect label={`What ${name} counts`} value={own} maths={maths} onValue={(id) => onNode(withMath(node, id, kind))} />
				)}
				{needs === "property" && (
					<PropertyPicker
						label={`Property of ${name}`}
						value={mathProperty(node)}
						types={["event", "person", "session"]}
						numeric
						events={events}
						placeholder="Which property?"
						onValue={(p) => onNode(withMathProperty(node, p))}
					/>
				)}
				{needs === "hogql" && (
					<DraftInput
						class="editor-code"
						aria-label={`SQL expression of ${name}`}
						placeholder={kind === "StickinessQuery" ? "properties.account" : "sum(toFloat(properties.price))"}
						value={textOf(node.math_hogql)}
						onValue={(text) => onNode(withFields(node, { math_hogql: text.trim() || undefined }))}
					/>
				)}
			</div>
			{errors.map((message) => (
				<p key={message} class="mistake" role="alert">
					{message}
				</p>
			))}
		</>
	);
}

/** The messages for some fields below a place. Their number never changes. */
function useMistakes(at: string, fields: string[]): string[] {
	return fields.map((field) => useMistake(`${at}.${field}`)).filter(Boolean);
}

function MathSelect({ label, value, maths, onValue }: { label: string; value: string; maths: Math[]; onValue: (id: string) => void }) {
	const id = useId();
	const under = [...new Set(maths.map((m) => m.under))];
	const options = (list: Math[]) =>
		list.map((m) => (
			<option key={m.id} value={m.id}>
				{m.label}
			</option>
		));
	return (
		<select id={id} aria-label={label} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
			{under.length === 1
				? options(maths)
				: under.map((title) => (
						<optgroup key={title} label={title}>
							{options(maths.filter((m) => m.under === title))}
						</optgroup>
					))}
		</select>
	);
}
