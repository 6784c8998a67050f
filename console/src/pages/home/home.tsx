import { Pin, Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { get, type Page } from "../../api/client";
import { useResource } from "../../api/use";
import { LoadedPage } from "../../data/page";
import { type Insight } from "../../insights/model";
import { InsightTile } from "../../insights/tile";
import { Link, pageAddress } from "../../router";
import { can, session } from "../../session";
import { Card, Empty, Loaded, PageHead } from "../../ui/basics";
import { toast } from "../../ui/dialog";
import { type Dashboard, nameOf } from "../dashboards/model";
import { DashboardTiles } from "../dashboards/tiles";
import { FirstEvent, findEvent } from "./first-event";

/** How many pinned dashboards and recent insights are shown. */
const mostPinned = 3;
const mostRecent = 6;

export default function Home() {
	const known = can("query:read");
	const found = useResource(async (signal) => (known ? await findEvent(false, signal) : ""), []);
	const [arrived, setArrived] = useState(false);
	const turn = (event: string) => {
		toast(`The first event has arrived: ${event}`);
		setArrived(true);
	};
	return (
		<LoadedPage of={found} title={title()} rows={6}>
			{(event) => (event === null && !arrived ? <FirstEvent onEvent={turn} /> : <Overview />)}
		</LoadedPage>
	);
}

const title = () => session.value?.project.name || "Home";

function Overview() {
	return (
		<>
			<PageHead title={title()}>
				{can("query:read") && (
					<Link class="button button-primary" to={pageAddress("insights", "new")}>
						<Plus size={14} aria-hidden="true" /> New insight
					</Link>
				)}
				{can("query:read") && (
					<Link class="button button-plain" to={pageAddress("sql")}>
						Write SQL
					</Link>
				)}
			</PageHead>
			{can("insight:read") && <Tiles />}
		</>
	);
}

function Tiles() {
	const list = useResource(
		async (signal) =>
			can("dashboard:read") ? (await get<Page<Dashboard>>("dashboards/", { pinned: true, limit: mostPinned }, signal)).results : [],
		[],
	);
	return (
		<Loaded of={list}>
			{(pinned) => (
				<div class="home">
					{pinned.length === 0 && can("dashboard:read") && <NothingPinned />}
					{pinned.map((d) => (
						<PinnedDashboard key={d.id} dashboard={d} />
					))}
					<Recent without={pinned.map((d) => d.id)} />
				</div>
			)}
		</Loaded>
	);
}

function NothingPinned() {
	return (
		<Card>
			<p>
				Pin a <Link to={pageAddress("dashboard")}>dashboard</Link> to see it here.
			</p>
		</Card>
	);
}

function PinnedDashboard({ dashboard }: { dashboard: Dashboard }) {
	const whole = useResource((signal) => get<Dashboard>(`dashboards/${dashboard.id}/`, {}, signal), [dashboard.id]);
	return (
		<section aria-label={nameOf(dashboard)}>
			<header class="home-part-head">
				<h2>
					<Link to={pageAddress("dashboard", dashboard.id)}>{nameOf(dashboard)}</Link>
				</h2>
				<Pin size={13} aria-label="Pinned" />
			</header>
			<Loaded of={whole}>{(d) => <DashboardTiles dashboard={d} />}</Loaded>
		</section>
	);
}

/** The insights that were changed last, `without` those on some dashboards, which are shown already. */
function Recent({ without }: { without: number[] }) {
	const list = useResource(
		(signal) => get<Page<Insight>>("insights/", { basic: true, saved: true, order: "-last_modified_at", limit: 30 }, signal),
		[],
	);
	return (
		<Loaded of={list}>
			{({ results, count }) => {
				const shown = results.filter((i) => !i.dashboards?.some((d) => without.includes(d))).slice(0, mostRecent);
				if (shown.length === 0 && count > 0) return null;
				return (
					<section aria-label="Recent insights">
						<header class="home-part-head">
							<h2>Recent insights</h2>
							<Link to={pageAddress("insights")}>All insights</Link>
						</header>
						{shown.length === 0 ? (
							<Card>
								<Empty title="No insights yet">
									<p>Count something, and save it.</p>
								</Empty>
							</Card>
						) : (
							<div class="columns">
								{shown.map((insight) => (
									<InsightTile key={insight.id} insight={insight} height={220} />
								))}
							</div>
						)}
					</section>
				);
			}}
		</Loaded>
	);
}
