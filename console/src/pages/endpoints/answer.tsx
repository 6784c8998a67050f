import { useMemo, useState } from "preact/hooks";
import type { Raw } from "../../api/client";
import { explainCache, explainRate, explainTiming } from "../../api/provenance";
import { type QueryNode, sourceOf } from "../../api/query";
import { Chart } from "../../charts/chart";
import { Button, Card, Segments } from "../../ui/basics";
import { download } from "../../ui/csv";
import { bytes, counted, duration, number } from "../../ui/format";
import { RowsGrid } from "../../ui/rows";
import { readAnswer } from "./read";
import type { Ran } from "./try";

/** An answer of a run, as rows and as it was sent, with where it comes from. */
export function Answer({ ran, query, name, onNext }: { ran: Ran; query: QueryNode; name: string; onNext?: (cursor: string) => void }) {
	const { raw, text: body, format } = ran;
	const { shown, result, cursor } = useMemo(() => readAnswer(ran), [ran]);
	const insight = result !== null && sourceOf(query).kind !== "HogQLQuery";
	const [wanted, setWanted] = useState<"rows" | "chart" | "text">("rows");
	const views = [
		...(shown && !insight ? [{ value: "rows" as const, label: "Rows" }] : []),
		...(insight ? [{ value: "chart" as const, label: "Chart" }] : []),
		...(body === null ? [] : [{ value: "text" as const, label: "As sent" }]),
	];
	const view = views.find((v) => v.value === wanted)?.value ?? views[0]?.value;
	return (
		<>
			<Origin raw={raw} rows={shown?.rows.length} />
			<Card
				title="Answer"
				actions={
					<>
						{views.length > 1 && view && <Segments label="View" value={view} choices={views} onValue={setWanted} />}
						<Button small onClick={() => download(`${name}.${ending(format)}`, raw.body, raw.contentType)}>
							Download
						</Button>
					</>
				}
			>
				{view === "rows" && shown && <RowsGrid label="Rows" columns={shown.columns} rows={shown.rows} />}
				{view === "chart" && result && <Chart query={sourceOf(query)} result={result} />}
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
					{rows !== undefined && `${counted(rows, "row")}, `}
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
