import { useMemo, useState } from "preact/hooks";
import type { Raw } from "../../api/client";
import { explainCache, explainRate, explainTiming } from "../../api/provenance";
import { type QueryNode, type QueryResult, sourceOf } from "../../api/query";
import { Chart } from "../../charts/chart";
import { Button, Card, Segments } from "../../ui/basics";
import { bytes, duration, number, text } from "../../ui/format";
import { Grid } from "../../ui/table";
import type { Ran } from "./try";

/** Rows to show in a grid, whatever the format that they came in. */
export interface Shown {
	columns: { title: string; number?: boolean; detail?: string }[];
	rows: unknown[][];
}

/** The rows of an answer; null for one that is no list of rows. */
export function rowsOf(format: string, body: string): Shown | null {
	if (format === "ndjson")
		return ofObjects(
			body
				.split("\n")
				.filter(Boolean)
				.map((line) => JSON.parse(line) as unknown),
		);
	if (format !== "arrays" && format !== "objects") return null;
	const { results, columns, types } = JSON.parse(body) as QueryResult;
	if (!Array.isArray(results)) return null;
	if (format === "objects") return ofObjects(results);
	if (!Array.isArray(columns) || !results.every(Array.isArray)) return null;
	const typeAt = (i: number) => {
		const type = types?.[i];
		return (Array.isArray(type) ? type[1] : type) ?? "";
	};
	return {
		columns: columns.map((title, i) => ({ title, detail: typeAt(i), number: /^(Nullable\()?(U?Int|Float|Decimal)/.test(typeAt(i)) })),
		rows: results as unknown[][],
	};
}

function ofObjects(rows: unknown[]): Shown | null {
	if (!rows.every((row) => typeof row === "object" && row !== null && !Array.isArray(row))) return null;
	const names = Object.keys((rows[0] as Record<string, unknown> | undefined) ?? {});
	return {
		columns: names.map((title) => ({ title, number: rows.every((row) => typeof (row as Record<string, unknown>)[title] === "number") })),
		rows: rows.map((row) => names.map((name) => (row as Record<string, unknown>)[name])),
	};
}

/** The cursor of the page after an answer; empty when there is none. */
export function nextCursor({ raw, format, text }: Ran): string {
	if (format !== "arrays" && format !== "objects") return raw.nextCursor;
	const { next_cursor } = JSON.parse(text ?? "{}") as { next_cursor?: string | null };
	return next_cursor ?? "";
}

/** An answer of a run, as rows and as it was sent, with where it comes from. */
export function Answer({ ran, query, name, onNext }: { ran: Ran; query: QueryNode; name: string; onNext?: (cursor: string) => void }) {
	const { raw, text: body, format } = ran;
	const shown = useMemo(() => (body === null ? null : rowsOf(format, body)), [body, format]);
	const insight = (format === "arrays" || format === "objects") && sourceOf(query).kind !== "HogQLQuery" && body !== null;
	const [wanted, setWanted] = useState<"rows" | "chart" | "text">("rows");
	const views = [
		...(shown && !insight ? [{ value: "rows" as const, label: "Rows" }] : []),
		...(insight ? [{ value: "chart" as const, label: "Chart" }] : []),
		...(body === null ? [] : [{ value: "text" as const, label: "As sent" }]),
	];
	const view = views.find((v) => v.value === wanted)?.value ?? views[0]?.value;
	const cursor = nextCursor(ran);
	return (
		<>
			<Origin raw={raw} rows={shown?.rows.length} />
			<Card
				title="Answer"
				actions={
					<>
						{views.length > 1 && view && <Segments label="View" value={view} choices={views} onValue={setWanted} />}
						<Button small onClick={() => save(raw.body, `${name}.${ending(format)}`)}>
							Download
						</Button>
					</>
				}
			>
				{view === "rows" && shown && (
					<Grid label="Rows" columns={shown.columns} count={shown.rows.length} cell={(row, column) => text(shown.rows[row]?.[column])} />
				)}
				{view === "chart" && body !== null && <Chart query={sourceOf(query)} result={JSON.parse(body) as QueryResult} />}
				{view === "text" && body !== null && <AsSent body={body} />}
				{view === undefined && <p class="hint">A file of {bytes(raw.body.size)}. Download it to read it.</p>}
				{shown && shown.rows.length === 0 && <p class="hint">No rows.</p>}
				{cursor && (
					<div class="pager">
						<span>More rows follow.</span>
						<Button small disabled={!onNext} onClick={() => onNext?.(cursor)}>
							Next page
						</Button>
					</div>
				)}
			</Card>
		</>
	);
}

/** The most of a text that is shown. */
const mostText = 200_000;

function AsSent({ body }: { body: string }) {
	return (
		<>
			<pre class="endpoints-raw" tabIndex={0} role="group" aria-label="The answer as it was sent">
				{body.slice(0, mostText)}
			</pre>
			{body.length > mostText && <p class="hint">The first {number(mostText)} characters. Download it for the rest.</p>}
		</>
	);
}

/** Where an answer comes from, in words. */
function Origin({ raw: { headers }, rows }: { raw: Raw; rows?: number }) {
	const rates = explainRate(headers.rateLimit, headers.rateLimitPolicy);
	return (
		<Card class="endpoints-origin">
			<p>
				<strong>{explainCache(headers)}</strong>
			</p>
			<dl>
				<dt>Size</dt>
				<dd>
					{rows !== undefined && `${number(rows)} ${rows === 1 ? "row" : "rows"}, `}
					{bytes(headers.size)}
				</dd>
				<dt>Time</dt>
				<dd>
					{duration(headers.elapsed / 1000)} until it was here
					{headers.serverTiming && `; on the server ${explainTiming(headers.serverTiming)}`}
				</dd>
				<dt>Rates</dt>
				<dd>{rates.length > 0 ? rates.join("; ") : "Nothing counted: no query ran for it"}</dd>
				{headers.requestId && (
					<>
						<dt>Request</dt>
						<dd>
							<code>{headers.requestId}</code>
						</dd>
					</>
				)}
			</dl>
		</Card>
	);
}

function ending(format: string): string {
	return format === "arrays" || format === "objects" ? "json" : format;
}

/** Saves bytes as a file. */
function save(body: Blob, name: string): void {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(body);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
