import type { QueryNode, QueryResult } from "../api/query";
import { emptyPicture, type Picture } from "./model";
import { lifecyclePicture, stickinessPicture } from "./options/activity";
import { funnelPicture } from "./options/funnels";
import { pathsPicture } from "./options/paths";
import { type ResultSettings, resultPicture } from "./options/result";
import { retentionPicture } from "./options/retention";
import { calendarPicture, correlationPicture, rowsPicture, webOverviewPicture, webStatsPicture } from "./options/tables";
import { trendsPicture } from "./options/trends";
import { unwrap } from "./unwrap";

const kinds: Record<string, (query: QueryNode, result: QueryResult, names?: ReadonlyMap<string, string>) => Picture> = {
	TrendsQuery: trendsPicture,
	FunnelsQuery: funnelPicture,
	RetentionQuery: retentionPicture,
	PathsQuery: pathsPicture,
	StickinessQuery: stickinessPicture,
	LifecycleQuery: lifecyclePicture,
	WebOverviewQuery: (_, result) => webOverviewPicture(result),
	WebStatsTableQuery: webStatsPicture,
	CalendarHeatmapQuery: (_, result) => calendarPicture(result),
	FunnelCorrelationQuery: correlationPicture,
};

/** What to draw of a query and its result. A query of an unknown kind is drawn as its rows. `names` are those of cohortsIn. */
export function pictureOf(node: QueryNode, result: QueryResult, names?: ReadonlyMap<string, string>): Picture {
	const { query, settings } = unwrap(node);
	const kind = kinds[query.kind];
	if (kind) return kind(query, result, names);
	if (settings) return resultPicture(result, settings as ResultSettings);
	return Array.isArray(result.results) ? rowsPicture(result) : emptyPicture("This result cannot be drawn");
}
