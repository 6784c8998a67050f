import { useEffect, useMemo, useState } from "preact/hooks";
import type { QueryNode, QueryResult } from "../api/query";
import { useResource } from "../api/use";
import { cohortName } from "../editor/suggest";
import { classes, Empty, Segments } from "../ui/basics";
import { RowsGrid } from "../ui/rows";
import { MapView } from "./map";
import type { Behind, Picture } from "./model";
import { FiguresView, HeatView, LegendView } from "./parts";
import { cohortsIn } from "./options/retention";
import { pictureOf } from "./picture";
import { PlotView } from "./plot";
import { SheetView } from "./sheet";
import { StepsView } from "./steps";
import { unwrap } from "./unwrap";
import { fieldsOf } from "./values";

export type { Behind } from "./model";

export interface ChartProps {
	/** The query; nodes around it, such as an InsightVizNode, are looked through. */
	query: QueryNode;
	result: QueryResult;
	/** What a click on a number asks for; without it numbers cannot be clicked. */
	onBehind?: (behind: Behind) => void;
	/** Height in pixels; the chart decides otherwise. */
	height?: number;
	/** In a tile: without legends and controls that need room. */
	small?: boolean;
	/** Shows the chart, or the table of its numbers. */
	view?: "chart" | "table";
	/** Whether there is a switch between the two. */
	switchable?: boolean;
}

/** The chart of an insight or another query that can be drawn. Its library is loaded when the first one is shown. */
export function Chart({ query, result, ...rest }: ChartProps) {
	const inner = unwrap(query).query;
	const names = useCohortNames(cohortsIn(inner, result));
	const picture = useMemo(() => pictureOf(query, result, names), [query, result, names]);
	const filter = fieldsOf(inner, filterNames[inner.kind] ?? "trendsFilter");
	return <PictureView picture={picture} legend={filter.showLegend as boolean | undefined} {...rest} />;
}

/** The names of cohorts by their numbers, once they are known. */
function useCohortNames(ids: string[]): ReadonlyMap<string, string> | undefined {
	const named = async (id: string, signal: AbortSignal) => [id, await cohortName(id, signal)] as const;
	const names = useResource(
		async (signal) => {
			const found = await Promise.allSettled(ids.filter((id) => id !== "0").map((id) => named(id, signal)));
			return ids.length === 0 ? undefined : new Map(found.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
		},
		[ids.join()],
	);
	return names.data;
}

const filterNames: Record<string, string> = {
	StickinessQuery: "stickinessFilter",
	LifecycleQuery: "lifecycleFilter",
	FunnelsQuery: "funnelsFilter",
};

/** A legend of more entries is scrolled. */
const fewEntries = 2;

/** Draws a picture, with its legend, its note and the switch to the table. */
export function PictureView({
	picture,
	onBehind,
	height,
	small = false,
	view = "chart",
	switchable = false,
	legend,
}: Omit<ChartProps, "query" | "result"> & { picture: Picture; legend?: boolean }) {
	const [shown, setShown] = useState(view);
	useEffect(() => setShown(view), [view]);
	const [hidden, setHidden] = useState<ReadonlySet<number>>(() => hiddenIn(picture));
	const names = JSON.stringify(picture.legend?.map((e) => [e.name, e.hidden]));
	useEffect(() => setHidden(hiddenIn(picture)), [names]);
	const toggle = (place: number) => {
		const next = new Set(hidden);
		if (!next.delete(place)) next.add(place);
		setHidden(next);
	};
	const { body } = picture;
	const fixed = body.is === "sheet" || body.is === "rows" || body.is === "empty";
	const asTable = shown === "table" && !fixed;
	const wanted = !small && (legend ?? (picture.legend?.length ?? 0) >= fewEntries);
	return (
		<figure class={classes("chart", small && "chart-small")}>
			{switchable && !fixed && (
				<div class="chart-switch">
					<Segments
						label="Shown as"
						value={shown}
						onValue={setShown}
						choices={[
							{ value: "chart", label: "Chart" },
							{ value: "table", label: "Table" },
						]}
					/>
				</div>
			)}
			{asTable ? (
				<SheetView sheet={picture.sheet} label={picture.label} height={height ?? 420} onBehind={onBehind} />
			) : (
				<BodyView picture={picture} height={height} small={small} hidden={hidden} onBehind={onBehind} />
			)}
			{!asTable && wanted && picture.legend && body.is === "plot" && (
				<LegendView entries={picture.legend} hidden={hidden} onToggle={toggle} />
			)}
			{picture.note && <p class="chart-note">{picture.note}</p>}
		</figure>
	);
}

const hiddenIn = (picture: Picture): ReadonlySet<number> => new Set((picture.legend ?? []).flatMap((e, i) => (e.hidden ? [i] : [])));

function BodyView({
	picture,
	height,
	small,
	hidden,
	onBehind,
}: {
	picture: Picture;
	height?: number;
	small: boolean;
	hidden: ReadonlySet<number>;
	onBehind?: (behind: Behind) => void;
}) {
	const { body, label } = picture;
	switch (body.is) {
		case "plot":
			return (
				<PlotView
					plot={body}
					label={label}
					height={height ?? (small ? 200 : body.height)}
					small={small}
					hidden={hidden}
					onBehind={onBehind}
				/>
			);
		case "figures":
			return <FiguresView figures={body.figures} small={small} onBehind={onBehind} />;
		case "steps":
			return (
				<StepsView
					steps={body.steps}
					sideways={body.sideways}
					reference={body.reference}
					small={small}
					height={Math.max(60, (height ?? (small ? 220 : 300)) - 100)}
					label={label}
					onBehind={onBehind}
				/>
			);
		case "heat":
			return <HeatView heat={body} label={label} onBehind={onBehind} />;
		case "map":
			return <MapView countries={body.countries} label={label} height={height ?? (small ? 220 : 420)} onBehind={onBehind} />;
		case "sheet":
			return <SheetView sheet={picture.sheet} label={label} height={height ?? 480} onBehind={onBehind} />;
		case "rows":
			return <RowsGrid label={label} columns={body.columns} rows={body.rows} height={height ?? 480} />;
		case "empty":
			return <Empty title={body.title}>{body.text}</Empty>;
	}
}
