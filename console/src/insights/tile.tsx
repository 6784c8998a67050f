import { RefreshCw } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { BehindDialog } from "../actors/dialog";
import { isAbort, pending, send } from "../api/client";
import { stringify } from "../api/json";
import { type Behind, Chart } from "../charts/chart";
import { When } from "../data/time";
import { Link, pageAddress } from "../router";
import { can } from "../session";
import { Empty, Failure, IconButton, Loading } from "../ui/basics";
import { drawable, type Insight, resultOf, titleOf } from "./model";
import { tileQueue } from "./queue";
import { useNow } from "./run";

interface TileProps {
	/** The insight, whose result the tile loads by itself. */
	insight: Pick<Insight, "id" | "short_id" | "name" | "derived_name" | "query" | "description">;
	/** The dashboard that the tile is on: its filters apply. */
	dashboard?: number;
	/** Filters on top of those of the dashboard. */
	filters?: unknown;
	/** When this number changes, a new result is computed. */
	turn?: number;
	/** Height of the chart in pixels; without it the chart fills the tile. */
	height?: number;
	/** More controls at the right of the title. */
	children?: ComponentChildren;
}

interface Loaded {
	insight?: Insight;
	error?: unknown;
	loading: boolean;
}

/** An insight with its result. It is loaded when the tile comes into view, and again when it is too old. */
export function InsightTile({ insight, dashboard, filters, turn = 0, height, children }: TileProps) {
	const box = useRef<HTMLElement>(null);
	const [behind, setBehind] = useState<Behind | null>(null);
	const seen = useSeen(box);
	const [own, setOwn] = useState(0);
	const state = useTile(insight.short_id, { wanted: seen || turn > 0, dashboard, filters, turn: turn + own });
	const shown = state.insight;
	const query = shown?.query ?? insight.query;
	return (
		<article class="tile" ref={box} aria-busy={state.loading} aria-label={titleOf(insight)} data-insight={insight.short_id}>
			<header class="tile-head">
				<h3>
					<Link to={pageAddress("insights", insight.short_id)} title={insight.description || undefined}>
						{titleOf(insight)}
					</Link>
				</h3>
				<div class="tile-actions">
					<Age insight={shown} />
					<IconButton label="Refresh" small busy={state.loading && !!shown} onClick={() => setOwn((n) => n + 1)}>
						<RefreshCw size={14} />
					</IconButton>
					{children}
				</div>
			</header>
			<div class="tile-body">
				{state.error !== undefined && <Failure error={state.error} retry={() => setOwn((n) => n + 1)} />}
				{shown && query ? (
					<TileResult insight={shown} height={height} onBehind={can("query:read") ? setBehind : undefined} />
				) : (
					state.error === undefined && <Loading />
				)}
			</div>
			{behind && <BehindDialog behind={behind} onClose={() => setBehind(null)} />}
		</article>
	);
}

function TileResult({ insight, height, onBehind }: { insight: Insight; height?: number; onBehind?: (behind: Behind) => void }) {
	const failed = insight.query_status?.error_message;
	if (failed) return <Failure error={new Error(failed)} />;
	if (!insight.query || insight.result === null || insight.result === undefined) return <Empty title="No result" />;
	return <Chart query={insight.query} result={resultOf(insight)} onBehind={onBehind} height={height} small />;
}

function Age({ insight }: { insight: Insight | undefined }) {
	const now = useNow();
	if (!insight?.last_refresh) return null;
	return (
		<span class="tile-age">
			<When time={insight.last_refresh} relative now={Math.max(now, Date.parse(insight.last_refresh))} />
		</span>
	);
}

/** Whether an element has been in view. */
function useSeen(box: { current: HTMLElement | null }): boolean {
	const [seen, setSeen] = useState(false);
	useEffect(() => {
		if (seen || !box.current) return;
		const observer = new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && setSeen(true), { rootMargin: "120px" });
		observer.observe(box.current);
		return () => observer.disconnect();
	}, [seen]);
	return seen;
}

/** Loads an insight with its result: a fresh one, and after each `turn` a new one. */
function useTile(id: string, on: { wanted: boolean; dashboard?: number; filters?: unknown; turn: number }): Loaded {
	const [state, setState] = useState<Loaded>({ loading: true });
	const [expired, setExpired] = useState(0);
	const computed = useRef(0);
	const filters = on.filters ? stringify(on.filters) : undefined;
	useEffect(() => {
		if (!on.wanted) return;
		const control = new AbortController();
		const refresh = computed.current === on.turn ? "blocking" : "force_blocking";
		setState((before) => ({ ...before, loading: true }));
		load(id, { refresh, from_dashboard: on.dashboard, filters_override: filters }, control.signal).then(
			(insight) => {
				computed.current = on.turn;
				setState({ insight, loading: false });
			},
			(error) => {
				if (control.signal.aborted || isAbort(error)) return;
				setState((before) => ({ insight: before.insight, error, loading: false }));
			},
		);
		return () => control.abort();
	}, [id, on.wanted, on.dashboard, filters, on.turn, expired]);
	useExpiry(state, () => setExpired((n) => n + 1));
	return state;
}

async function load(id: string, search: Record<string, string | number | undefined>, signal: AbortSignal): Promise<Insight> {
	pending.value++; // waiting for its turn is loading, too
	try {
		const { data } = await tileQueue.run(() => send<Insight>("GET", `insights/${id}/`, { search, signal, exact: true }), signal);
		return drawable(data);
	} finally {
		pending.value--;
	}
}

/** The least and the most time in milliseconds after which a result is looked at again. */
const leastWait = 10_000;
const mostWait = 600_000;

/** How long is waited in milliseconds when a new result did not come. */
const waitAfterFailure = 60_000;

/** Calls `expire` when a result is too old, while somebody looks at the page. It calls again after a time if that did not help. */
function useExpiry({ insight, loading }: Loaded, expire: () => void): void {
	const time = insight?.cache_target_age;
	useEffect(() => {
		const at = time ? new Date(time).getTime() : Number.NaN;
		if (loading || Number.isNaN(at)) return;
		let timer: ReturnType<typeof setTimeout>;
		const wait = (milliseconds: number) => {
			timer = setTimeout(check, Math.min(Math.max(milliseconds, leastWait), mostWait));
		};
		const check = () => {
			if (Date.now() >= at && !document.hidden) expire();
			else wait(at - Date.now());
		};
		wait(Date.now() >= at ? waitAfterFailure : at - Date.now());
		return () => clearTimeout(timer);
	}, [time, loading]);
}
