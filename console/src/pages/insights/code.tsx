import { useState } from "preact/hooks";
import { send } from "../../api/client";
import { addressOf, curlCommand } from "../../api/curl";
import { stringify } from "../../api/json";
import { type QueryNode, type QueryResult, sourceOf } from "../../api/query";
import { useResource } from "../../api/use";
import type { Insight } from "../../insights/model";
import { Loaded, Snippet, Tabs } from "../../ui/basics";
import { Dialog } from "../../ui/dialog";

/** What POST query/sql/ answers. */
interface QuerySQL {
	hogql: string | null;
	sql: string;
	parameters: { name: string; type: string; value: unknown }[];
}

type Form = "json" | "hogql" | "sql" | "curl";

const forms: { value: Form; label: string }[] = [
	{ value: "json", label: "JSON" },
	{ value: "hogql", label: "HogQL" },
	{ value: "sql", label: "ClickHouse SQL" },
	{ value: "curl", label: "curl" },
];

interface CodeProps {
	query: QueryNode;
	result: QueryResult | undefined;
	insight?: Insight;
	onClose: () => void;
}

/** The query as JSON, as HogQL, as the SQL that ClickHouse runs, and as a command. */
export function CodeDialog({ query, result, insight, onClose }: CodeProps) {
	const [form, setForm] = useState<Form>("json");
	return (
		<Dialog title="Code" onClose={onClose} wide>
			<Tabs label="Form" value={form} choices={forms} onValue={setForm}>
				{form === "json" && <Snippet label="JSON" text={stringify(query, 2)} />}
				{form === "hogql" && <SQL query={query} result={result} hogql />}
				{form === "sql" && <SQL query={query} result={result} />}
				{form === "curl" && <Snippet label="Command" text={curlOf(query, insight)} />}
			</Tabs>
		</Dialog>
	);
}

function SQL({ query, result, hogql }: { query: QueryNode; result: QueryResult | undefined; hogql?: boolean }) {
	const compiled = useResource((signal) => compile(query, result, signal), [query]);
	return (
		<Loaded of={compiled}>
			{(sql) => {
				const shown = hogql ? sql.hogql : sql.sql;
				if (!shown) return <p>This query has no {hogql ? "HogQL" : "SQL"}.</p>;
				return (
					<div class="stack">
						<Snippet label={hogql ? "HogQL" : "ClickHouse SQL"} text={shown} />
						{!hogql && sql.parameters.length > 0 && (
							<Snippet label="Parameters" text={sql.parameters.map((p) => `{${p.name}:${p.type}} = ${stringify(p.value)}`).join("\n")} />
						)}
					</div>
				);
			}}
		</Loaded>
	);
}

async function compile(query: QueryNode, result: QueryResult | undefined, signal: AbortSignal): Promise<QuerySQL> {
	const source = sourceOf(query);
	const { data } = await send<QuerySQL>("POST", "query/sql/", { body: { query: source }, signal, exact: true });
	return { ...data, hogql: data.hogql ?? result?.hogql ?? null };
}

/** The command that asks the query, and the one that reads the saved insight. */
export function curlOf(query: QueryNode, insight?: Insight): string {
	const ask = curlCommand(addressOf("query/"), { query: sourceOf(query) }, { pretty: true });
	if (!insight) return ask;
	return `${ask}\n\n# The saved insight with its result\n${curlCommand(addressOf(`insights/${insight.short_id}/?refresh=blocking`))}`;
}
