import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort, type Raw, sendRaw } from "../../api/client";
import { explainCache } from "../../api/provenance";
import { Button, Card, Checkbox, Empty, Failure, Field, Select, TextInput } from "../../ui/basics";
import { Answer } from "./answer";
import type { TabProps } from "./endpoint";
import { VariableFields } from "./fields";
import { requestOf, runPath } from "./form";
import { formatsOf, type OpenApi, runBody, variablesOf } from "./openapi";

export const formatNames: Record<string, string> = {
	arrays: "Rows as arrays",
	objects: "Rows as objects",
	csv: "CSV",
	ndjson: "NDJSON",
	parquet: "Parquet",
	arrow: "Arrow",
};

/** What the pages after an answer have in common with it. */
interface Asked {
	version: number;
	limit: unknown;
	format: string;
	exact: boolean;
}

/** The answer to a run, with its text where it has one. */
export interface Ran extends Asked {
	raw: Raw;
	text: string | null;
}

const refreshNames: Record<string, string> = {
	cache: "From the cache while it is fresh",
	force: "Computed again",
	direct: "Computed by the query, not read from its table",
};

/** When a run can have its result computed. */
function refreshes(document: OpenApi) {
	const values = (runBody(document)?.properties?.refresh?.enum ?? ["cache"]).map(String);
	return values.map((value) => ({ value, label: refreshNames[value] ?? value }));
}

/** A form that runs the endpoint, and the answer. */
export function TryTab({ endpoint, versions, document, form, setForm }: TabProps) {
	const [ran, setRan] = useState<Ran | null>(null);
	const [failed, setFailed] = useState<unknown>();
	const [running, setRunning] = useState(false);
	const control = useRef<AbortController | null>(null);
	useEffect(() => () => control.current?.abort(), []);
	if (!document) return null;
	const variables = variablesOf(document);
	const pages = runBody(document)?.properties?.limit !== undefined;
	const { body, mistakes } = requestOf(form, variables, pages);
	const run = async (request: Record<string, unknown>, { version, limit, format, exact }: Asked) => {
		control.current?.abort();
		const mine = new AbortController();
		control.current = mine;
		setRunning(true);
		setFailed(undefined);
		try {
			const raw = await sendRaw("POST", runPath(endpoint.name, { format, exact }), { body: request, signal: mine.signal });
			const text = /json|text\//.test(raw.contentType) ? await raw.body.text() : null;
			setRan({ raw, text, version, limit, format, exact });
		} catch (error) {
			if (isAbort(error)) return;
			setRan(null);
			setFailed(error);
		} finally {
			if (control.current === mine) setRunning(false);
		}
	};
	const submit = (event: Event) => {
		event.preventDefault();
		if (Object.keys(mistakes).length > 0) return;
		const version = Number(body.version ?? endpoint.current_version);
		void run(body, { version, limit: body.limit, format: form.format, exact: form.exact });
	};
	const next = ran && !running ? (cursor: string) => run({ cursor, limit: ran.limit }, ran) : undefined;
	const query = versions.find((v) => v.version === ran?.version)?.query ?? endpoint.query;
	const cancel = () => {
		control.current?.abort();
		setRunning(false);
	};
	return (
		<div class="endpoints-try">
			<Card title="Run">
				<form class="form" onSubmit={submit}>
					<VariableFields variables={variables} form={form} setForm={setForm} mistakes={mistakes} />
					{pages && (
						<div class="endpoints-pair">
							<Field label="Limit" error={mistakes["(limit)"]}>
								{(id) => (
									<TextInput id={id} inputMode="numeric" value={form.limit} onValue={(limit) => setForm({ limit })} placeholder="None" />
								)}
							</Field>
							<Field label="Offset" error={mistakes["(offset)"]}>
								{(id) => (
									<TextInput id={id} inputMode="numeric" value={form.offset} onValue={(offset) => setForm({ offset })} placeholder="0" />
								)}
							</Field>
						</div>
					)}
					<div class="endpoints-pair">
						<Field label="Version">
							{(id) => (
								<Select
									id={id}
									value={form.version}
									choices={[
										{ value: "", label: `Current (v${endpoint.current_version})` },
										...versions.map((v) => ({ value: String(v.version), label: `v${v.version}${v.is_draft ? " (draft)" : ""}` })),
									]}
									onValue={(version) => setForm({ version })}
								/>
							)}
						</Field>
						<Field label="Format">
							{(id) => (
								<Select
									id={id}
									value={form.format}
									choices={formatsOf(document).map((value) => ({ value, label: formatNames[value] ?? value }))}
									onValue={(format) => setForm({ format })}
								/>
							)}
						</Field>
					</div>
					<Field label="Result">
						{(id) => <Select id={id} value={form.refresh} choices={refreshes(document)} onValue={(refresh) => setForm({ refresh })} />}
					</Field>
					<Checkbox label="64-bit integers as text" checked={form.exact} onValue={(exact) => setForm({ exact })} />
					<div class="actions">
						<Button type="submit" look="primary" busy={running} disabled={Object.keys(mistakes).length > 0}>
							Run
						</Button>
						{running && <Button onClick={cancel}>Cancel</Button>}
					</div>
				</form>
			</Card>
			<p class="visually-hidden" role="status">
				{ran && !running ? explainCache(ran.raw.headers) : ""}
			</p>
			<div class="endpoints-answer" aria-busy={running}>
				{failed !== undefined && <Failure error={failed} />}
				{ran && <Answer ran={ran} query={query} name={endpoint.name} onNext={next} />}
				{!ran && failed === undefined && <Empty title="No answer yet">Run the endpoint to see what callers get.</Empty>}
			</div>
		</div>
	);
}
