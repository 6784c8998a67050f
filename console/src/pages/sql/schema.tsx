import { ChevronRight } from "lucide-preact";
import { useState } from "preact/hooks";
import { ask } from "../../api/query";
import { useResource } from "../../api/use";
import { Loaded, TextInput } from "../../ui/basics";

interface FieldOfTable {
	name: string;
	hogql_value: string;
	type: string;
}

interface TableOfSchema {
	name: string;
	type: string;
	fields: Record<string, FieldOfTable>;
}

/** The tables that the key can read, with their columns. A click puts a name into the text. */
export function Schema({ onName }: { onName: (name: string) => void }) {
	const [search, setSearch] = useState("");
	const tables = useResource(async (signal) => {
		const { data } = await ask({ kind: "DatabaseSchemaQuery" }, { signal });
		return Object.values(data.tables as Record<string, TableOfSchema>).sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
	}, []);
	return (
		<div class="schema">
			<TextInput
				type="search"
				aria-label="Find a table or column"
				placeholder="Find a table or column"
				value={search}
				onValue={setSearch}
			/>
			<Loaded of={tables}>
				{(all) => (
					<ul>
						{all.map((table) => (
							<SchemaTable key={table.name} table={table} search={search.toLowerCase()} onName={onName} />
						))}
					</ul>
				)}
			</Loaded>
		</div>
	);
}

/** The tables that most queries read come first. */
function rank(table: TableOfSchema): number {
	const first = ["events", "persons", "sessions", "groups"].indexOf(table.name);
	if (first >= 0) return first;
	return table.type === "posthog" ? 10 : 20;
}

function SchemaTable({ table, search, onName }: { table: TableOfSchema; search: string; onName: (name: string) => void }) {
	const fields = Object.values(table.fields);
	const inName = table.name.toLowerCase().includes(search);
	const shown = inName ? fields : fields.filter((f) => f.name.toLowerCase().includes(search));
	if (!inName && shown.length === 0) return null;
	return (
		<li>
			<details open={search !== "" && !inName}>
				<summary>
					<ChevronRight size={14} aria-hidden="true" />
					{table.name}
				</summary>
				<ul>
					{shown.map((f) => (
						<li key={f.name}>
							<button type="button" title={`Insert ${f.hogql_value}`} onClick={() => onName(f.hogql_value)}>
								<span>{f.name}</span>
								<small>{f.type.replaceAll("_", " ")}</small>
							</button>
						</li>
					))}
				</ul>
			</details>
		</li>
	);
}
