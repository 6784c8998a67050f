import { useState } from "preact/hooks";
import { post } from "../../api/client";
import { readNumber } from "../../api/json";
import { can } from "../../session";
import { type Variable, variableNameMistake } from "../../sql/variables";
import { Button, Field, Select, TextInput } from "../../ui/basics";
import { FormDialog } from "../../ui/form-dialog";

/** A form for the values of the variables that a text uses. Those that do not exist yet can be made. */
export function Variables({
	names,
	defined,
	given,
	onGiven,
	onMade,
}: {
	names: string[];
	defined: readonly Variable[];
	given: Record<string, unknown>;
	onGiven: (given: Record<string, unknown>) => void;
	onMade: () => void;
}) {
	const [making, setMaking] = useState("");
	if (names.length === 0) return null;
	return (
		<fieldset class="sql-variables">
			<legend class="visually-hidden">Variables</legend>
			{names.map((name) => {
				const variable = defined.find((v) => v.code_name === name);
				if (variable) {
					return (
						<VariableInput key={name} variable={variable} value={given[name]} onValue={(value) => onGiven({ ...given, [name]: value })} />
					);
				}
				const mistake = variableNameMistake(name);
				return (
					<div key={name} class="field">
						<span>{name}</span>
						{mistake ? (
							<p class="mistake">{mistake}</p>
						) : (
							<Button small disabled={!can("insight_variable:write")} onClick={() => setMaking(name)}>
								Create this variable
							</Button>
						)}
					</div>
				);
			})}
			{making && <NewVariable name={making} onClose={() => setMaking("")} onMade={onMade} />}
		</fieldset>
	);
}

/** A control for a variable's value, by its type. Without a value the default is used. */
export function VariableInput({ variable, value, onValue }: { variable: Variable; value: unknown; onValue: (value: unknown) => void }) {
	const usual = variable.default_value === null || variable.default_value === undefined ? "" : String(variable.default_value);
	const given = value === undefined || value === null ? "" : String(value);
	const text = (next: string) => onValue(next === "" ? undefined : next);
	return (
		<Field label={variable.name}>
			{(id) => {
				switch (variable.type) {
					case "Boolean":
						return (
							<Select
								id={id}
								value={given}
								choices={[
									{ value: "", label: usual ? `Default (${usual})` : "Default" },
									{ value: "true", label: "true" },
									{ value: "false", label: "false" },
								]}
								onValue={(next) => onValue(next === "" ? undefined : next === "true")}
							/>
						);
					case "List":
						return variable.is_multi ? (
							<select id={id} multiple onChange={(event) => onValue([...event.currentTarget.selectedOptions].map((o) => o.value))}>
								{(variable.values ?? []).map((v) => (
									<option key={v} value={v} selected={Array.isArray(value) && value.includes(v)}>
										{v}
									</option>
								))}
							</select>
						) : (
							<Select
								id={id}
								value={given}
								choices={[
									{ value: "", label: usual ? `Default (${usual})` : "Default" },
									...(variable.values ?? []).map((v) => ({ value: v, label: v })),
								]}
								onValue={text}
							/>
						);
					case "Number":
						return (
							<TextInput
								id={id}
								type="number"
								step="any"
								placeholder={usual}
								value={given}
								onValue={(next) => onValue(readNumber(next) ?? undefined)}
							/>
						);
					case "Date":
						return <TextInput id={id} type="date" value={given} onValue={text} />;
					default:
						return <TextInput id={id} placeholder={usual} value={given} onValue={text} />;
				}
			}}
		</Field>
	);
}

function NewVariable({ name, onClose, onMade }: { name: string; onClose: () => void; onMade: () => void }) {
	const [type, setType] = useState<Variable["type"]>("String");
	const [usual, setUsual] = useState("");
	const [values, setValues] = useState("");
	const create = async () => {
		const list = values
			.split("\n")
			.map((v) => v.trim())
			.filter(Boolean);
		await post("insight_variables/", {
			name,
			type,
			default_value: usual === "" ? null : typed(type, usual),
			values: type === "List" ? list : undefined,
		});
		onMade();
	};
	return (
		<FormDialog title={`Create the variable ${name}`} action="Create" onSubmit={create} onClose={onClose}>
			<Field label="Type">
				{(id) => (
					<Select
						id={id}
						value={type}
						choices={(["String", "Number", "Boolean", "List", "Date"] as const).map((t) => ({ value: t, label: t }))}
						onValue={setType}
					/>
				)}
			</Field>
			{type === "List" && (
				<Field label="Values" hint="One in each line.">
					{(id) => <textarea id={id} rows={4} value={values} onInput={(event) => setValues(event.currentTarget.value)} />}
				</Field>
			)}
			<Field label="Default" hint="Used when a run gives no value.">
				{(id) => <TextInput id={id} value={usual} onValue={setUsual} />}
			</Field>
		</FormDialog>
	);
}

function typed(type: Variable["type"], text: string): unknown {
	if (type === "Number") {
		const value = readNumber(text);
		if (value === null) throw new Error("The default must be a number.");
		return value;
	}
	return type === "Boolean" ? text === "true" : text;
}
