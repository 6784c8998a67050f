import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, isAbort, messageOf, patch, post } from "../../api/client";
import { ask, type QueryNode } from "../../api/query";
import { addressOf, curlCommand } from "../../api/curl";
import { useResource } from "../../api/use";
import type { ResultSettings } from "../../charts/options/result";
import { DateRange } from "../../editor/date-range";
import { navigate, pageAddress, place } from "../../router";
import { can, session } from "../../session";
import { note } from "../../sql/history";
import { TextEditor } from "../../sql/text-editor";
import { fromQuery, toQuery, usedNames, usesFilters, type Variable, type VariableUse } from "../../sql/variables";
import { Button, Field, PageHead, TextInput } from "../../ui/basics";
import { copyText } from "../../ui/copy";
import { attempt, FormDialog, toast } from "../../ui/dialog";
import { duration } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { PublishDialog } from "../insights/publish";
import { History } from "./history";
import { type Ran, Results, type Rows } from "./results";
import { Schema } from "./schema";
import { Variables } from "./variables";

const example = "select event, count() as events, uniq(person_id) as people\nfrom events\ngroup by event\norder by events desc";

/** A saved insight that the text comes from. */
interface SavedSQL {
	id: number;
	short_id: string;
	name: string | null;
	query: ResultSettings & { kind: string; source?: QueryNode };
}

/** A page to ask in SQL. `?q=` gives its text, `?insight=` the saved insight that it changes. */
export default function SQLPage() {
	const asked = new URLSearchParams(place.value.search);
	const short = asked.get("insight");
	const [text, setText] = useState(() => asked.get("q") ?? draft() ?? example);
	const [given, setGiven] = useState<Record<string, unknown>>({});
	const [dialog, setDialog] = useState<"" | "history" | "save" | "publish">("");
	const [saved, setSaved] = useState<SavedSQL | null>(null);
	const [settings, setSettings] = useState<ResultSettings>({});
	const [dates, setDates] = useState<Record<string, unknown>>({ date_from: "-7d" });
	const variables = useResource(
		async (signal) =>
			can("insight_variable:read") ? (await get<{ results: Variable[] }>("insight_variables/", { limit: 1000 }, signal)).results : [],
		[],
	);
	const defined = variables.data ?? [];
	const filters = usesFilters(text) ? { dateRange: dates } : undefined;
	const query = (): QueryNode => ({ kind: "HogQLQuery", query: text, variables: toQuery(text, defined, given), filters });
	/** The query with how its rows are drawn, as insights keep it. */
	const drawn = (): QueryNode => ({
		...saved?.query,
		kind: "DataVisualizationNode",
		source: { ...saved?.query.source, ...query() },
		...settings,
	});
	const run = useRun();
	useEffect(() => keepDraft(text), [text]);
	useEffect(() => {
		if (!short) setSaved(null);
		if (!short || saved?.short_id === short) return;
		attempt(async () => {
			const found = (await get<{ results: SavedSQL[] }>("insights/", { short_id: short })).results[0];
			if (typeof found?.query.source?.query !== "string") throw new Error("This insight is not written in SQL.");
			setSaved(found);
			setText(found.query.source.query);
			setGiven(fromQuery(found.query.source.variables as Record<string, VariableUse>));
			setSettings({ display: found.query.display, chartSettings: found.query.chartSettings });
			const kept = found.query.source.filters as { dateRange?: Record<string, unknown> } | undefined;
			if (kept?.dateRange) setDates(kept.dateRange);
		});
	}, [short]);
	const update = () =>
		saved &&
		attempt(async () => {
			await patch(`insights/${saved.id}/`, { query: drawn() });
		}, "Saved");
	return (
		<>
			<PageHead title={saved ? (saved.name ?? "SQL") : "SQL"} about="HogQL: ClickHouse's SQL over the tables of this project.">
				<Button onClick={() => setDialog("history")}>History</Button>
				{saved && (
					<Button onClick={update} disabled={!can("insight:write")}>
						Save
					</Button>
				)}
				<Menu
					label="More"
					items={[
						{ label: "Save as insight", onSelect: () => setDialog("save"), disabled: !can("insight:write") },
						{ label: "Publish as an endpoint", onSelect: () => setDialog("publish"), disabled: !can("endpoint:write") },
						{ label: "Copy as JSON", onSelect: () => copy(JSON.stringify(query(), null, 2)) },
						{ label: "Copy as curl", onSelect: () => copy(curlCommand(addressOf("query/"), { query: query() })) },
						{ label: "Copy ClickHouse's SQL", onSelect: () => copy(String(run.answer?.data.clickhouse ?? "")), disabled: !run.answer },
						{
							label: "Copy a link to this text",
							onSelect: () => copy(`${location.origin}${pageAddress("sql")}?q=${encodeURIComponent(text)}`),
						},
					]}
				/>
			</PageHead>
			<div class="sql">
				<Schema onName={(name) => setText(text && !/\s$/.test(text) ? `${text} ${name}` : text + name)} />
				<div class="stack sql-work">
					<TextEditor
						label="Query"
						hint="select …"
						value={text}
						onValue={setText}
						onRun={() => run.start(query())}
						context={{ language: "hogQL", variables: toQuery(text, defined, given), filters }}
					/>
					<Variables names={usedNames(text)} defined={defined} given={given} onGiven={setGiven} onMade={variables.reload} />
					{filters && <DateRange label="Dates of {filters}" value={dates} onValue={(range) => setDates({ ...range })} />}
					<div class="sql-bar">
						{run.since === null ? (
							<Button look="primary" onClick={() => run.start(query())} disabled={!text.trim()}>
								Run <kbd>Ctrl ⏎</kbd>
							</Button>
						) : (
							<>
								<Button onClick={run.cancel}>Cancel</Button>
								<Running since={run.since} />
							</>
						)}
					</div>
					{run.error !== undefined && <Mistake error={run.error} onFix={(fix) => setText(fix(text))} />}
					{run.answer && (
						<Results
							key={run.answer.headers.requestId}
							answer={run.answer}
							onMore={hasLimit(run.answer.asked) ? undefined : () => run.answer && runMore(run.answer.asked)}
							settings={settings}
							onSettings={setSettings}
						/>
					)}
				</div>
			</div>
			{dialog === "history" && (
				<History
					onClose={() => setDialog("")}
					onRun={(before) => {
						setText(before.query);
						setDialog("");
					}}
				/>
			)}
			{dialog === "save" && (
				<NameDialog
					title="Save as insight"
					action="Save"
					onClose={() => setDialog("")}
					onName={async (name) => {
						const made = await post<SavedSQL>("insights/", { name, query: drawn() });
						toast("Saved");
						navigate(`${pageAddress("sql")}?insight=${made.short_id}`, { replace: true });
						setSaved(made);
					}}
				/>
			)}
			{dialog === "publish" && <PublishDialog query={query()} title={saved?.name ?? ""} onClose={() => setDialog("")} />}
		</>
	);

	/** Runs a query without a LIMIT for as many rows as there can be. */
	function runMore(asked: QueryNode): void {
		const next = `${String(asked.query).replace(/[\s;]+$/, "")}\nlimit ${maxRows}`;
		setText(next);
		run.start({ ...asked, query: next });
	}
}

/** The most rows of a result. */
const maxRows = 50_000;

/** Reports whether the text of a query says how many rows it wants. */
const hasLimit = (asked: QueryNode): boolean => /\blimit\b/i.test(String(asked.query));

/** A query that runs, or that ran. The page that is left gives it up. */
function useRun() {
	const [answer, setAnswer] = useState<Ran>();
	const [error, setError] = useState<unknown>();
	const [since, setSince] = useState<number | null>(null);
	const control = useRef<AbortController | null>(null);
	useEffect(
		() => () => {
			const running = control.current;
			control.current = null;
			running?.abort();
		},
		[],
	);
	const start = useCallback(async (query: QueryNode) => {
		control.current?.abort();
		const own = new AbortController();
		control.current = own;
		const began = Date.now();
		setSince(began);
		setError(undefined);
		try {
			const got = await ask<Rows>(
				{ ...query, modifiers: { timings: true } },
				{ refresh: "force_blocking", signal: own.signal, exact: true },
			);
			note({ query: String(query.query), at: began, rows: got.data.results.length, seconds: got.headers.elapsed / 1000 });
			if (control.current === own) setAnswer({ ...got, asked: query });
		} catch (failure) {
			if (control.current !== own) return;
			if (isAbort(failure)) {
				toast("Query cancelled");
			} else {
				note({ query: String(query.query), at: began, error: messageOf(failure) });
				setError(failure);
				setAnswer(undefined);
			}
		}
		if (control.current === own) setSince(null);
	}, []);
	const cancel = useCallback(() => control.current?.abort(), []);
	return { answer, error, since, start, cancel };
}

/** How long a query has been running. */
function Running({ since }: { since: number }) {
	const [now, setNow] = useState(since);
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now()), 100);
		return () => clearInterval(timer);
	}, []);
	return <span class="hint">Running for {duration(Math.max(0, now - since) / 1000)}</span>;
}

/** An error of a run, with a button for the suggested replacement. */
function Mistake({ error, onFix }: { error: unknown; onFix: (fix: (text: string) => string) => void }) {
	const extra = error instanceof ApiError ? error.extra : {};
	const { hint, line, column } = extra as { hint?: string; line?: number; column?: number };
	const metadata = extra.hogql_metadata as { errors?: { start: number; end: number; fix: string | null }[] } | undefined;
	const fix = metadata?.errors?.find((e) => e.fix);
	return (
		<div class="failure" role="alert">
			<p>
				{messageOf(error)}
				{line !== undefined && ` (line ${line}, column ${column})`}
				{hint && !fix && `. ${hint}`}
			</p>
			{fix && (
				<Button
					small
					onClick={() =>
						onFix((text) => {
							const points = [...text];
							return points.slice(0, fix.start).join("") + fix.fix + points.slice(fix.end).join("");
						})
					}
				>
					Replace with {fix.fix}
				</Button>
			)}
		</div>
	);
}

function NameDialog({
	title,
	action,
	hint,
	onName,
	onClose,
}: {
	title: string;
	action: string;
	hint?: string;
	onName: (name: string) => Promise<void>;
	onClose: () => void;
}) {
	const [name, setName] = useState("");
	return (
		<FormDialog title={title} action={action} onSubmit={() => onName(name.trim())} onClose={onClose}>
			<Field label="Name" hint={hint}>
				{(id) => <TextInput id={id} value={name} onValue={setName} required autofocus />}
			</Field>
		</FormDialog>
	);
}

async function copy(text: string): Promise<void> {
	await attempt(() => copyText(text), "Copied");
}

const draftAt = () => `analytics.sql.draft.${session.value?.project.id ?? 0}`;

/** The text that this tab had before a reload. */
const draft = (): string | null => sessionStorage.getItem(draftAt());

const keepDraft = (text: string): void => sessionStorage.setItem(draftAt(), text);
