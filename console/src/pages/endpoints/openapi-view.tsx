import { useMemo, useState } from "preact/hooks";
import { addressOf } from "../../api/curl";
import { Badge, Card, CopyButton, Segments } from "../../ui/basics";
import { type Column, Table } from "../../ui/table";
import type { TabProps } from "./endpoint";
import { type FieldRow, type NamedSchema, type Operation, operationsOf, schemasOf } from "./openapi";
import { pathOf } from "./api";

/** The OpenAPI document of the endpoint: its operations and schemas, or its text. */
export function OpenApiTab({ endpoint, document }: TabProps) {
	const [view, setView] = useState<"page" | "text">("page");
	const operations = useMemo(() => (document ? operationsOf(document) : []), [document]);
	const schemas = useMemo(() => (document ? schemasOf(document) : []), [document]);
	if (!document) return null;
	const text = JSON.stringify(document, null, 2);
	return (
		<div class="endpoints-stack">
			<div class="endpoints-filters">
				<Segments
					label="View"
					value={view}
					choices={[
						{ value: "page", label: "Page" },
						{ value: "text", label: "JSON" },
					]}
					onValue={setView}
				/>
				<CopyButton text={text} label="Copy the document" />
				<CopyButton text={addressOf(pathOf(endpoint.name, "openapi.json"))} label="Copy its address" />
			</div>
			{view === "text" ? (
				<pre class="endpoints-raw" tabIndex={0} role="group" aria-label="OpenAPI document">
					{text}
				</pre>
			) : (
				<>
					<p class="hint">
						OpenAPI {document.openapi}, version {document.info.version} of the endpoint. Client generators take the document as it is.
					</p>
					{operations.map((operation) => (
						<OperationCard key={operation.method + operation.path} operation={operation} />
					))}
					<h2>Schemas</h2>
					{schemas.map((schema) => (
						<SchemaCard key={schema.name} schema={schema} />
					))}
				</>
			)}
		</div>
	);
}

function OperationCard({ operation }: { operation: Operation }) {
	return (
		<Card>
			<details class="endpoints-operation">
				<summary>
					<Badge tone="accent">{operation.method}</Badge> <code>{operation.path}</code>{" "}
					<span class="hint">
						{operation.summary} ({operation.id}){operation.deprecated && " – deprecated"}
					</span>
				</summary>
				{operation.description && <p>{operation.description}</p>}
				{operation.parameters.length > 0 && (
					<Fields title="Parameters" rows={operation.parameters.map((p) => ({ ...p, name: `${p.name} (${p.place})` }))} />
				)}
				{operation.body.length > 0 && <Fields title="Body" rows={operation.body} />}
				<h3>Responses</h3>
				<Table
					label="Responses"
					rows={operation.responses}
					keyOf={(response) => response.status}
					columns={[
						{ name: "status", title: "Status", cell: (r) => r.status },
						{
							name: "content",
							title: "Content",
							cell: (r) =>
								r.contents.map((c) => (
									<p key={c.media}>
										<code>{c.media}</code> {c.schema ? <a href={`#schema-${c.schema}`}>{c.schema}</a> : c.type}
									</p>
								)),
						},
						{ name: "description", title: "When", cell: (r) => r.description },
						{ name: "headers", title: "Headers", extra: true, cell: (r) => r.headers.map((h) => h.name).join(", ") },
					]}
				/>
			</details>
		</Card>
	);
}

function SchemaCard({ schema }: { schema: NamedSchema }) {
	return (
		<section class="card" id={`schema-${schema.name}`}>
			<header class="card-head">
				<h3>{schema.name}</h3>
				<span class="hint">{schema.type}</span>
			</header>
			{schema.description && <p class="endpoints-schema-about">{schema.description}</p>}
			{schema.fields.length > 0 && <Fields title="" rows={schema.fields} name={schema.name} />}
		</section>
	);
}

const fieldColumns: Column<FieldRow>[] = [
	{ name: "name", title: "Name", cell: (f) => <code>{f.name}</code> },
	{ name: "type", title: "Type", cell: (f) => f.type },
	{ name: "required", title: "Required", cell: (f) => (f.required ? "yes" : "") },
	{ name: "default", title: "Default", extra: true, cell: (f) => f.fallback && <code>{f.fallback}</code> },
	{ name: "about", title: "Description", extra: true, cell: (f) => f.description },
];

function Fields({ title, rows, name = title }: { title: string; rows: FieldRow[]; name?: string }) {
	return (
		<>
			{title && <h3>{title}</h3>}
			<Table label={`Fields of ${name}`} columns={fieldColumns} rows={rows} keyOf={(f, i) => `${f.name}${i}`} />
		</>
	);
}
