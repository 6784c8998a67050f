import { useState } from "preact/hooks";
import { get, type Page, post } from "../../api/client";
import { readNumber } from "../../api/json";
import { type QueryNode, sourceOf } from "../../api/query";
import { useResource, useSettled } from "../../api/use";
import { endpointNameMistake, kindName } from "../../insights/model";
import { can } from "../../session";
import { usedNames, type Variable, variableNameMistake } from "../../sql/variables";
import { Field, Segments, Select, TextArea, TextInput } from "../../ui/basics";
import { Combobox, type Suggestion } from "../../ui/combobox";
import { FormDialog } from "../../ui/form-dialog";
import type { Endpoint } from "./api";

interface InsightRecord {
	short_id: string;
	name: string | null;
	derived_name: string | null;
	query: QueryNode | null;
}

const types = ["String", "Number", "Boolean", "Date"] as const;
type VariableType = (typeof types)[number];

/** A variable that a query uses and the project does not have yet. */
export interface MissingVariable {
	type: VariableType;
	fallback: string;
}

/** The dialog that publishes a query under a name. */
export function Create({ onClose, onCreated }: { onClose: () => void; onCreated: (name: string) => void }) {
	const [name, setName] = useState("");
	const [description, setDescription] = useState("");
	const [source, setSource] = useState<"sql" | "insight">("sql");
	const [sql, setSQL] = useState("");
	const [insight, setInsight] = useState<Suggestion | null>(null);
	const missing = useMissingVariables(source === "sql" ? sql : "");
	const mistake = endpointNameMistake(name.trim());
	const create = async () => {
		if (mistake) throw new Error(mistake);
		await missing.define();
		const query = source === "sql" ? { kind: "HogQLQuery", query: sql } : await queryOfInsight(insight?.value);
		const more = source === "insight" ? { derived_from_insight: insight?.value } : {};
		const { name: created } = await post<Endpoint>("endpoints/", { name: name.trim(), description, query, ...more });
		onCreated(created);
	};
	return (
		<FormDialog title="New endpoint" action="Create endpoint" wide onSubmit={create} onClose={onClose}>
			<Field
				label="Name"
				error={mistake}
				hint="Letters, digits, hyphens and underscores. It is in the endpoint's address and cannot change."
			>
				{(id) => <TextInput id={id} value={name} onValue={setName} required autofocus />}
			</Field>
			<Field label="Description">{(id) => <TextArea id={id} value={description} onValue={setDescription} />}</Field>
			<Segments
				label="Where the query comes from"
				value={source}
				choices={[
					{ value: "sql", label: "SQL" },
					{ value: "insight", label: "Saved insight", disabled: !can("insight:read") },
				]}
				onValue={setSource}
			/>
			{source === "sql" ? (
				<>
					<SQLField value={sql} onValue={setSQL} />
					<MissingVariables missing={missing} />
				</>
			) : (
				<Field label="Insight" hint="Later changes of the insight do not change the endpoint.">
					{(id) => (
						<Combobox
							id={id}
							label="Insight"
							value={insight?.value ?? ""}
							shown={insight?.label}
							suggest={findInsights}
							onValue={(_, chosen) => setInsight(chosen ?? null)}
						/>
					)}
				</Field>
			)}
		</FormDialog>
	);
}

/** A field for a text of SQL. */
export function SQLField({ value, onValue, label = "SQL" }: { value: string; onValue: (text: string) => void; label?: string }) {
	return (
		<Field label={label} hint="{variables.name} is a value that each run gives.">
			{(id) => (
				<textarea
					id={id}
					class="endpoints-code"
					rows={12}
					spellcheck={false}
					required
					value={value}
					onInput={(event) => onValue(event.currentTarget.value)}
				/>
			)}
		</Field>
	);
}

async function findInsights(text: string, signal: AbortSignal): Promise<Suggestion[]> {
	const { results } = await get<Page<InsightRecord>>("insights/", { search: text, limit: 20, basic: true, saved: true }, signal);
	return results
		.filter((i): i is InsightRecord & { query: QueryNode } => i.query !== null)
		.map((i) => ({ value: i.short_id, label: i.name || i.derived_name || "Untitled", detail: kindName(i.query) }));
}

async function queryOfInsight(shortID: string | undefined): Promise<QueryNode> {
	if (!shortID) throw new Error("Choose an insight.");
	const { results } = await get<Page<InsightRecord>>("insights/", { short_id: shortID, basic: true });
	const query = results[0]?.query;
	if (!query) throw new Error("The insight has no query.");
	return sourceOf(query);
}

export interface Missing {
	variables: Record<string, MissingVariable>;
	/** Why others cannot be created. */
	mistakes: string[];
	set: (name: string, variable: MissingVariable) => void;
	/** Creates them in the project, and gives their names. It creates none if there is a mistake. */
	define: () => Promise<string[]>;
}

/** The variables that a text of SQL uses and the project does not have. */
export function useMissingVariables(sql: string): Missing {
	const settled = useSettled(sql, 400);
	const names = usedNames(settled);
	const [chosen, setChosen] = useState<Record<string, MissingVariable>>({});
	const known = useResource(
		async (signal) => (names.length > 0 && can("insight_variable:read") ? await readVariables(signal) : null),
		[names.join()],
	);
	const possible = names.filter((name) => !variableNameMistake(name));
	const unknown = known.data ? possible.filter((name) => !known.data?.some((v) => v.code_name === name)) : [];
	const variables = Object.fromEntries(unknown.map((name) => [name, chosen[name] ?? { type: "String" as const, fallback: "" }]));
	return {
		variables,
		mistakes: mistakesIn(names),
		set: (name, variable) => setChosen((before) => ({ ...before, [name]: variable })),
		define: async () => {
			const used = usedNames(sql);
			const mistakes = mistakesIn(used);
			if (mistakes.length > 0) throw new Error(mistakes.join(" "));
			const there = used.length > 0 && can("insight_variable:read") ? await readVariables() : [];
			const made: string[] = [];
			for (const name of used) {
				const variable = variables[name];
				if (!variable || there.some((v) => v.code_name === name)) continue;
				await post("insight_variables/", definition(name, variable));
				made.push(name);
			}
			return made;
		},
	};
}

const mistakesIn = (names: readonly string[]) => names.map(variableNameMistake).filter(Boolean);

async function readVariables(signal?: AbortSignal): Promise<Variable[]> {
	const all: Variable[] = [];
	for (let more = true; more;) {
		const page = await get<Page<Variable>>("insight_variables/", { limit: 500, offset: all.length }, signal);
		all.push(...page.results);
		more = page.next !== null && page.results.length > 0;
	}
	return all;
}

function definition(name: string, { type, fallback }: MissingVariable): Record<string, unknown> {
	if (fallback === "") return { name, type };
	if (type === "Number") {
		const value = readNumber(fallback);
		if (value === null) throw new Error(`The default of ${name} is not a number.`);
		return { name, type, default_value: value };
	}
	return { name, type, default_value: type === "Boolean" ? fallback.trim() === "true" : fallback };
}

/** Asks for the types of variables that are not there yet. */
export function MissingVariables({ missing }: { missing: Missing }) {
	const names = Object.entries(missing.variables);
	if (names.length + missing.mistakes.length === 0) return null;
	return (
		<section class="endpoints-missing" aria-label="New variables">
			{missing.mistakes.map((mistake) => (
				<p key={mistake} class="mistake">
					{mistake}
				</p>
			))}
			{names.length > 0 && (
				<p class="hint">
					{can("insight_variable:write")
						? "The project does not have these variables yet. They are created with the endpoint."
						: "The project does not have these variables, and your key may not create them (insight_variable:write)."}
				</p>
			)}
			{names.map(([name, variable]) => (
				<div key={name} class="endpoints-missing-row">
					<code>{name}</code>
					<Field label={`Type of ${name}`} hideLabel>
						{(id) => (
							<Select
								id={id}
								value={variable.type}
								choices={types.map((t) => ({ value: t, label: t }))}
								onValue={(type) => missing.set(name, { ...variable, type })}
							/>
						)}
					</Field>
					<Field label={`Default of ${name}`} hideLabel>
						{(id) => (
							<TextInput
								id={id}
								placeholder={variable.type === "Boolean" ? "Default: true or false" : "Default (none)"}
								value={variable.fallback}
								onValue={(fallback) => missing.set(name, { ...variable, fallback })}
							/>
						)}
					</Field>
				</div>
			))}
		</section>
	);
}
