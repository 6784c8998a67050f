import { get, patch } from "../../api/client";
import type { Insight } from "../../insights/model";

/** Changes the dashboards that an insight is on. They are read again before, so that what somebody else changed since the page was loaded stays. */
export async function changeDashboards(insight: number, change: (on: number[]) => number[]): Promise<Insight> {
	const path = `insights/${insight}/`;
	const { dashboards } = await get<Insight>(path);
	return patch<Insight>(path, { dashboards: change(dashboards ?? []) });
}
