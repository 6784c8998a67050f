import { afterEach, expect, test, vi } from "vitest";
import { changeDashboards } from "../src/pages/insights/placing";

afterEach(() => vi.unstubAllGlobals());

test("an insight stays on dashboards that somebody else put it on", async () => {
	const sent: unknown[] = [];
	vi.stubGlobal("fetch", async (_: string, init?: RequestInit) => {
		if (init?.body) sent.push(JSON.parse(String(init.body)));
		return Response.json({ id: 1, dashboards: [4, 5] });
	});
	await changeDashboards(1, (on) => [...on, 6]);
	await changeDashboards(1, (on) => on.filter((id) => id !== 4));
	expect(sent).toEqual([{ dashboards: [4, 5, 6] }, { dashboards: [5] }]);
});
