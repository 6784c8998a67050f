import { Checkbox, Field, Select, TextInput } from "../../ui/basics";
import { controlOf, placeholderOf, type RunForm, type Variable } from "./form";

/** The fields for the variables of an endpoint, each by its type. */
export function VariableFields({
	variables,
	form,
	setForm,
	mistakes,
}: {
	variables: readonly Variable[];
	form: RunForm;
	setForm: (change: Partial<RunForm>) => void;
	mistakes: Record<string, string>;
}) {
	if (variables.length === 0) return <p class="hint">This version has no variables.</p>;
	return (
		<>
			{variables.map((variable) => {
				const { name, schema } = variable;
				const isNull = form.nulls[name] ?? false;
				return (
					<div key={name} class="endpoints-variable">
						<Field label={variable.required ? `${name} (required)` : name} error={mistakes[name]} hint={hintOf(variable)}>
							{(id) => (
								<Control
									id={id}
									variable={variable}
									disabled={isNull}
									value={form.values[name]}
									onValue={(value) => setForm({ values: { ...form.values, [name]: value } })}
								/>
							)}
						</Field>
						{schema.nullable && (
							<Checkbox
								label={`Send NULL as ${name}`}
								checked={isNull}
								onValue={(on) => setForm({ nulls: { ...form.nulls, [name]: on } })}
							/>
						)}
					</div>
				);
			})}
		</>
	);
}

function hintOf({ name, schema }: Variable): string | undefined {
	const about = schema.description === name ? "" : (schema.description ?? "");
	const lines = schema.type === "array" && !schema.items?.enum ? "One value on each line." : "";
	return [about, lines].filter(Boolean).join(" ") || undefined;
}

interface ControlProps {
	id: string;
	variable: Variable;
	value: string | string[] | undefined;
	onValue: (value: string | string[]) => void;
	disabled: boolean;
}

function Control({ id, variable, value, onValue, disabled }: ControlProps) {
	const text = typeof value === "string" ? value : "";
	const placeholder = placeholderOf(variable);
	const absent = {
		value: "",
		label: variable.schema.default === undefined || variable.schema.default === null ? placeholder : `Default: ${placeholder}`,
	};
	switch (controlOf(variable)) {
		case "choice": {
			const choices = (variable.schema.enum ?? []).filter((v) => v !== null).map((v) => ({ value: String(v), label: String(v) }));
			return <Select id={id} value={text} disabled={disabled} choices={[absent, ...choices]} onValue={onValue} />;
		}
		case "boolean":
			return (
				<Select
					id={id}
					value={text}
					disabled={disabled}
					choices={[absent, { value: "true", label: "true" }, { value: "false", label: "false" }]}
					onValue={onValue}
				/>
			);
		case "choices":
			return <Choices id={id} variable={variable} value={value} onValue={onValue} disabled={disabled} />;
		case "list":
			return (
				<textarea
					id={id}
					rows={3}
					disabled={disabled}
					placeholder={placeholder}
					value={text}
					onInput={(event) => onValue(event.currentTarget.value)}
				/>
			);
		case "number":
			return <TextInput id={id} inputMode="decimal" disabled={disabled} placeholder={placeholder} value={text} onValue={onValue} />;
		case "date":
			return (
				<TextInput
					id={id}
					disabled={disabled}
					placeholder={placeholder === "Not given" ? "2026-01-31" : placeholder}
					value={text}
					onValue={onValue}
				/>
			);
		case "time":
			return (
				<TextInput
					id={id}
					disabled={disabled}
					placeholder={placeholder === "Not given" ? "2026-01-31T12:00:00Z" : placeholder}
					value={text}
					onValue={onValue}
				/>
			);
		case "text":
			return <TextInput id={id} disabled={disabled} placeholder={placeholder} value={text} onValue={onValue} />;
	}
}

function Choices({ id, variable, value, onValue, disabled }: ControlProps) {
	const chosen = Array.isArray(value) ? value : [];
	return (
		<fieldset id={id} class="endpoints-choices" aria-label={variable.name}>
			{(variable.schema.items?.enum ?? []).map((option) => {
				const text = String(option);
				return (
					<Checkbox
						key={text}
						label={text}
						disabled={disabled}
						checked={chosen.includes(text)}
						onValue={(on) => onValue(on ? [...chosen, text] : chosen.filter((c) => c !== text))}
					/>
				);
			})}
		</fieldset>
	);
}
