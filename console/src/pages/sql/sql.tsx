import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, messageOf, patch, post } from "../../api/client";
import { stringify } from "../../api/json";
import type { QueryNode } from "../../api/query";
import { addressOf, curlCommand } from "../../api/curl";
import { useResource } from "../../api/use";
import { DateRange } from "../../editor/date-range";
import { same } from "../../insights/model";
import { navigate, pageAddress, place } from "../../router";
import { can } from "../../session";
import { draftOf, dropDraft, keepDraft, nameOf, type Written } from "../../sql/drafts";
import { takesLimit } from "../../sql/limits";
import { TextEditor } from "../../sql/text-editor";
import { drawnOf, isSQL, plain, queryOf, writtenOf } from "../../sql/saved";
import { usedNames, usesFilters, type Variable } from "../../sql/variables";
import { Badge, Button, Field, Loaded, PageHead, TextInput } from "../../ui/basics";
import { copyText } from "../../ui/copy";
import { attempt, toast } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { duration } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { PublishDialog } from "../insights/publish";
import { History } from "./history";
import { Results } from "./results";
import { useRun } from "./run";
import { Schema } from "./schema";
import { Variables } from "./variables";

const example = "select event, count() as events, uniq(person_id) as people\nfrom events\ngroup by event\norder by events desc";

/** A saved insight that the text comes from. */
interface SavedSQL {
	id: number;
	short_id: string;
	name: string | null;
	query: QueryNode;
}

/** A saved insight that is written in SQL; null if that is no longer wanted. */
async function readSQL(short: string, signal: AbortSignal): Promise<SavedSQL | null> {
	try {
		const found = (await get<{ results: Partial<SavedSQL>[] }>("insights/", { short_id: short }, signal)).results[0];
		if (signal.aborted) return null;
		if (!isSQL(found?.query)) throw new Error("This insight is not written in SQL.");
		return found as SavedSQL;
	} catch (error) {
		if (signal.aborted) return null;
		throw error;
	}
}

/** A page to ask in SQL. `?q=` gives its text, `?insight=` the saved insight that it changes. */
export default function SQLPage() {
	const asked = new URLSearchParams(place.value.search);
	const short = asked.get("insight");
	const link = short ? null : asked.get("q");
	const origin = nameOf({ insight: short, link });
	const first = () => draftOf(origin) ?? plain(link ?? (short ? "" : example));
	const [written, setWritten] = useState(first);
	const { text, given, dates, settings } = written;
	const [dialog, setDialog] = useState<"" | "history" | "save" | "publish">("");
	const [saved, setSaved] = useState<(SavedSQL & { written: Written }) | null>(null);
	const variables = useResource(
		async (signal) =>
			can("insight_variable:read") ? (await get<{ results: Variable[] }>("insight_variables/", { limit: 1000 }, signal)).results : [],
		[],
	);
	const defined = variables.data ?? [];
	const source = queryOf(written, defined, saved?.query);
	const run = useRun();
	/** What was written before it was changed; none for the tab's own, and for an insight until it is loaded. */
	const original = short ? (saved?.short_id === short ? saved.written : null) : link === null ? null : plain(link);
	const changed = original !== null && !same(written, original);
	const edit = (changes: Partial<Written>) => {
		const next = { ...written, ...changes };
		setWritten(next);
		if (original && same(next, original)) dropDraft(origin);
		else keepDraft(origin, next);
	};
	const shown = useRef(origin);
	useEffect(() => {
		const same = shown.current === origin;
		shown.current = origin;
		if (short && saved?.short_id === short) return; // it was made of this text
		if (!same) {
			setWritten(first());
			setSaved(null);
			run.clear();
		}
		if (!short) return;
		const control = new AbortController();
		attempt(async () => {
			const found = await readSQL(short, control.signal);
			if (!found) return;
			const as = writtenOf(found.query);
			setSaved({ ...found, written: as });
			setWritten(draftOf(origin) ?? as);
		});
		return () => control.abort();
	}, [origin]);
	const update = () =>
		saved &&
		attempt(async () => {
			const query = drawnOf(written, source, saved?.query);
			await patch(`insights/${saved.id}/`, { query });
			if (same(draftOf(origin), written)) dropDraft(origin);
			setSaved((now) => (now?.id === saved.id ? { ...now, query, written } : now));
		}, "Saved");
	return (
		<>
			<PageHead
				title={
					<>
						{saved?.name || "SQL"} {changed && <Badge tone="warn">Unsaved changes</Badge>}
					</>
				}
				about="HogQL: ClickHouse's SQL over the tables of this project."
			>
				{changed && <Button onClick={() => edit(original)}>Discard</Button>}
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
						{ label: "Copy as JSON", onSelect: () => copy(stringify(source, 2)) },
						{ label: "Copy as curl", onSelect: () => copy(curlCommand(addressOf("query/"), { query: source })) },
						{ label: "Copy ClickHouse's SQL", onSelect: () => copy(String(run.answer?.data.clickhouse ?? "")), disabled: !run.answer },
						{
							label: "Copy a link to this text",
							onSelect: () => copy(`${location.origin}${pageAddress("sql")}?q=${encodeURIComponent(text)}`),
						},
					]}
				/>
			</PageHead>
			<div class="sql">
				<Schema onName={(name) => edit({ text: text && !/\s$/.test(text) ? `${text} ${name}` : text + name })} />
				<div class="stack sql-work">
					<TextEditor
						label="Query"
						hint="select …"
						value={text}
						onValue={(next) => edit({ text: next })}
						onRun={() => run.start(source)}
						context={{ language: "hogQL", variables: source.variables, filters: source.filters }}
					/>
					{usedNames(text).length > 0 && (
						<Loaded of={variables} rows={1}>
							{(all) => (
								<Variables
									names={usedNames(text)}
									defined={all}
									given={given}
									onGiven={(values) => edit({ given: values })}
									onMade={variables.reload}
								/>
							)}
						</Loaded>
					)}
					{usesFilters(text) && (
						<DateRange label="Dates of {filters}" none="No dates" value={dates} onValue={(range) => edit({ dates: { ...range } })} />
					)}
					<div class="sql-bar">
						{run.since === null ? (
							<Button look="primary" onClick={() => run.start(source)} disabled={!text.trim()}>
								Run <kbd>Ctrl ⏎</kbd>
							</Button>
						) : (
							<>
								<Button onClick={run.cancel}>Cancel</Button>
								<Running since={run.since} />
							</>
						)}
					</div>
					{run.failure && (
						<Mistake error={run.failure.error} onFix={run.failure.asked.query === text ? (fix) => edit({ text: fix(text) }) : undefined} />
					)}
					{run.answer && (
						<Results
							key={run.answer.headers.requestId}
							answer={run.answer}
							onMore={run.answer.asked.query === text && takesLimit(text) ? runMore : undefined}
							settings={settings}
							onSettings={(next) => edit({ settings: next })}
						/>
					)}
				</div>
			</div>
			{dialog === "history" && (
				<History
					onClose={() => setDialog("")}
					onRun={(before) => {
						edit({ text: before.query });
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
						const query = drawnOf(written, source, saved?.query);
						const made = await post<SavedSQL>("insights/", { name, query });
						toast("Saved");
						dropDraft(origin);
						setSaved({ ...made, query, written });
						navigate(`${pageAddress("sql")}?insight=${made.short_id}`, { replace: true });
					}}
				/>
			)}
			{dialog === "publish" && <PublishDialog query={source} title={saved?.name ?? ""} onClose={() => setDialog("")} />}
		</>
	);

	/** Runs a text without a LIMIT for as many rows as there can be. */
	function runMore(): void {
		const next = `${text.replace(/[\s;]+$/, "")}\nlimit ${maxRows}`;
		edit({ text: next });
		run.start({ ...source, query: next });
	}
}

/** The most rows of a result. */
const maxRows = 50_000;

/** How long a query has been running. */
function Running({ since }: { since: number }) {
	const [now, setNow] = useState(since);
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now()), 100);
		return () => clearInterval(timer);
	}, []);
	return <span class="hint">Running for {duration(Math.max(0, now - since) / 1000)}</span>;
}

/** An error of a run, with a button for the suggested replacement while the text is still the one that was run. */
function Mistake({ error, onFix }: { error: unknown; onFix?: (fix: (text: string) => string) => void }) {
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
			{fix && onFix && (
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
