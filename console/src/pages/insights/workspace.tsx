import { RefreshCw } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { BehindDialog } from "../../actors/dialog";
import { ApiError, messageOf } from "../../api/client";
import { parse, stringify } from "../../api/json";
import { readCacheStatus } from "../../api/provenance";
import { type QueryNode, sourceOf, type Warning } from "../../api/query";
import { useSettled } from "../../api/use";
import { type Behind, Chart } from "../../charts/chart";
import { When } from "../../data/time";
import { insightIn, QueryEditor } from "../../editor/editor";
import { addressOfQuery, fixed, type Insight, queryOfAddress, same, withSource } from "../../insights/model";
import { type Run, useNow, useRun } from "../../insights/run";
import { Link, navigate, pageAddress, place } from "../../router";
import { can } from "../../session";
import { Badge, Button, Card, Empty, Failure, Loading } from "../../ui/basics";
import { duration } from "../../ui/format";
import { JSONEditor } from "./json-editor";

/** A query that is being edited, and is in the page's address. */
export interface Draft {
	query: QueryNode;
	set: (query: QueryNode) => void;
	/** Whether it differs from where it began. */
	changed: boolean;
	/** Whether something would be lost that was edited here, and did not just come with the address. */
	unsaved: boolean;
	/** Whether it is being written as text that is no query, so that it is not what the page shows. */
	wrong: boolean;
	setWrong: (wrong: boolean) => void;
}

/** The query of the page: that in the address, or `base`. Each change, once it has settled, is a step that the back button undoes. */
export function useDraft(base: QueryNode): Draft {
	const { path, search } = place.value;
	const [touched, setTouched] = useState(false);
	const [wrong, setWrong] = useState(false);
	const [query, set] = useState(() => whole(base, queryOfAddress(search, window.location.hash)));
	const written = useRef(search);
	const began = useRef(path);
	useEffect(() => {
		if (search === written.current || place.value.path !== began.current) return;
		written.current = search;
		set(whole(base, queryOfAddress(search)));
	}, [search]);
	const settled = useSettled(stringify(query), 600);
	useEffect(() => {
		if (place.value.path !== began.current) return;
		const next = parse(settled) as QueryNode;
		if (same(whole(base, queryOfAddress(place.value.search)), next)) return;
		const kept = new URLSearchParams(place.value.search).get("dashboard");
		const to = new URLSearchParams(addressOfQuery(same(next, base) ? null : next));
		if (kept) to.set("dashboard", kept);
		written.current = to.size ? `?${to}` : "";
		navigate(began.current + written.current, { replace: window.location.hash !== "" });
	}, [settled]);
	const edit = (next: QueryNode) => {
		setTouched(true);
		set(next);
	};
	const changed = !same(query, base);
	return { query, set: edit, changed, unsaved: (changed && touched) || wrong, wrong, setWrong };
}

/** A query from an address in the nodes that it is saved in. */
function whole(base: QueryNode, given: QueryNode | null): QueryNode {
	return given ? withSource(given, sourceOf(given)) : base;
}

/** The editor of a query beside its result. `saved` is the insight that it belongs to. */
export function Workspace({ draft, run, saved }: { draft: Draft; run: Run; saved?: Insight }) {
	const source = sourceOf(draft.query);
	const set = (next: QueryNode) => draft.set(withSource(draft.query, next));
	return (
		<div class="insight">
			<Card class="insight-editor">
				<h2 class="visually-hidden">Query</h2>
				{can("query:read") ? (
					<Editor query={source} onQuery={set} onWrong={draft.setWrong} error={run.loading ? undefined : run.error} saved={saved} />
				) : (
					<p class="hint">Your key may see results but not run other queries.</p>
				)}
			</Card>
			<Card class="insight-result">
				<h2 class="visually-hidden">Result</h2>
				<Status run={run} />
				<Warnings of={run} query={draft.query} onQuery={can("query:read") ? draft.set : undefined} />
				<Result run={run} draft={draft} />
			</Card>
		</div>
	);
}

interface EditorProps {
	query: QueryNode;
	onQuery: (query: QueryNode) => void;
	onWrong: (wrong: boolean) => void;
	error: unknown;
	saved?: Insight;
}

function Editor({ query, onQuery, onWrong, error, saved }: EditorProps) {
	const [asText, setAsText] = useState(false);
	const formed = !!insightIn(query);
	return (
		<div class="stack">
			{query.kind === "HogQLQuery" && (
				<p>
					<Link to={`${pageAddress("sql")}?${new URLSearchParams(saved ? { insight: saved.short_id } : { q: String(query.query ?? "") })}`}>
						Open in the SQL editor
					</Link>
				</p>
			)}
			{formed && !asText ? (
				<QueryEditor query={query} onQuery={onQuery} error={error} />
			) : (
				<JSONEditor query={query} onQuery={onQuery} onWrong={onWrong} error={error} />
			)}
			{formed && (
				<div class="actions">
					<Button small look="quiet" onClick={() => setAsText(!asText)}>
						{asText ? "Edit as a form" : "Edit as JSON"}
					</Button>
				</div>
			)}
		</div>
	);
}

function Result({ run, draft }: { run: Run; draft: Draft }) {
	const [behind, setBehind] = useState<Behind | null>(null);
	const { ran } = run;
	if (isOld(run) && !run.loading) {
		return (
			<>
				<Missing run={run} />
				{ran && <p class="hint">Below is the result of the query before.</p>}
				{ran && (
					<div class="insight-old">
						<Chart query={withSource(draft.query, ran.query)} result={ran.result} />
					</div>
				)}
			</>
		);
	}
	if (!ran) return <Loading rows={8} />;
	const shown = withSource(draft.query, ran.query);
	return (
		<div class={run.loading ? "insight-old" : undefined} aria-busy={run.loading}>
			<Chart query={shown} result={ran.result} onBehind={can("query:read") ? setBehind : undefined} switchable />
			{behind && <BehindDialog behind={behind} onClose={() => setBehind(null)} />}
		</div>
	);
}

/** Reports whether the query of the page has no result, so that the one that is there is of the query before. */
const isOld = (run: Run): boolean => run.cancelled || run.error !== undefined;

/** Why there is no result. */
function Missing({ run }: { run: Run }) {
	if (run.cancelled) return <Empty title="The query was canceled" />;
	return isMistake(run.error) ? <Mistake error={run.error} /> : <Failure error={run.error} retry={run.refresh} />;
}

function Mistake({ error }: { error: unknown }) {
	return (
		<Empty title="The query has a mistake">
			<p>{messageOf(error)}</p>
		</Empty>
	);
}

/** Reports whether an error is one of the query, which the editor shows at its place. */
const isMistake = (error: unknown): boolean => error instanceof ApiError && error.status === 400 && can("query:read");

/** How old the result is, whether it was computed now, and how long that took. */
function Status({ run }: { run: Run }) {
	const now = useNow();
	const { ran, loading } = run;
	return (
		<div class="insight-status">
			<p role="status">
				{loading && "Running…"}
				{!loading && !isOld(run) && ran && (
					<Facts
						when={ran.result.last_refresh}
						cached={readCacheStatus(ran.headers.cacheStatus).hit}
						elapsed={ran.headers.elapsed}
						now={now}
					/>
				)}
			</p>
			{loading ? (
				<Button small onClick={run.stop}>
					Cancel
				</Button>
			) : (
				<Button small look="quiet" icon={<RefreshCw size={13} aria-hidden="true" />} onClick={run.refresh}>
					Refresh
				</Button>
			)}
		</div>
	);
}

function Facts({ when, cached, elapsed, now }: { when: unknown; cached: boolean; elapsed: number; now: number }) {
	const time = typeof when === "string" ? when : null;
	const parts: ComponentChildren[] = [];
	if (time) {
		parts.push(
			<span key="age">
				Computed <When time={time} relative now={Math.max(now, Date.parse(time))} />
			</span>,
		);
	}
	parts.push(<span key="time"> · {duration(elapsed / 1000)}</span>);
	return (
		<>
			{cached && (
				<>
					<Badge tone="accent">Cached</Badge>{" "}
				</>
			)}
			{parts}
		</>
	);
}

function Warnings({ of, query, onQuery }: { of: Run; query: QueryNode; onQuery?: (query: QueryNode) => void }) {
	const warnings = of.ran?.result.warnings ?? [];
	if (of.loading || isOld(of) || warnings.length === 0) return null;
	return (
		<ul class="insight-warnings">
			{warnings.map((w, i) => (
				<li key={i} class="notice">
					<span>{w.message}</span>
					<Fix warning={w} query={query} onQuery={onQuery} />
				</li>
			))}
		</ul>
	);
}

function Fix({ warning, query, onQuery }: { warning: Warning; query: QueryNode; onQuery?: (query: QueryNode) => void }) {
	const next = fixed(query, warning);
	if (!next || !onQuery) return null;
	return (
		<Button small onClick={() => onQuery(next)}>
			Use {warning.fix}
		</Button>
	);
}

/** The draft with its run, for the pages. */
export function useWorkspace(base: QueryNode, saved?: Insight): { draft: Draft; run: Run } {
	const draft = useDraft(base);
	return { draft, run: useRun(sourceOf(draft.query), draft.changed ? undefined : saved) };
}
