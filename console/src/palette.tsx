import { signal } from "@preact/signals";
import { get } from "./api/client";
import { navigation } from "./pages";
import { navigate, pageAddress } from "./router";
import { can, session } from "./session";
import { Combobox, type Incomplete, type Suggestion } from "./ui/combobox";
import { Dialog } from "./ui/dialog";

/** Whether the list of pages and saved things is open. */
export const paletteOpen = signal(false);

window.addEventListener("keydown", (event) => {
	if (session.value && event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
		event.preventDefault();
		paletteOpen.value = !paletteOpen.value;
	}
});

/** A field that finds pages, insights, dashboards and endpoints by their names, and goes there. */
export function Palette() {
	const shut = () => {
		paletteOpen.value = false;
	};
	return (
		<Dialog title="Go to" onClose={shut}>
			<Combobox
				label="Page, insight, dashboard or endpoint"
				placeholder="Type a name"
				value=""
				autofocus
				suggest={find}
				onValue={(address) => {
					shut();
					navigate(address);
				}}
			/>
		</Dialog>
	);
}

interface Found {
	results: { id?: number; short_id?: string; name?: string | null; derived_name?: string | null }[];
}

/** How many of each kind are offered. */
const most = 6;

async function find(text: string, signal: AbortSignal): Promise<Suggestion[] | Incomplete> {
	const lower = text.toLowerCase();
	const pages = navigation
		.flatMap((group) => group.items)
		.filter((item) => (!item.scope || can(item.scope)) && item.title.toLowerCase().includes(lower))
		.map((item) => ({ value: pageAddress(...item.path.split("/").filter(Boolean)), label: item.title, detail: "Page" }));
	if (!text) return pages;
	const kinds: [string, string, string, (found: Found["results"][number]) => string][] = [
		["insight:read", "insights/", "Insight", (i) => pageAddress("insights", i.short_id ?? "")],
		["dashboard:read", "dashboards/", "Dashboard", (d) => pageAddress("dashboard", d.id ?? 0)],
		["endpoint:read", "endpoints/", "Endpoint", (e) => pageAddress("endpoints", e.name ?? "")],
	];
	const lists = await Promise.allSettled(
		kinds
			.filter(([scope]) => can(scope))
			.map(async ([, path, detail, address]) => {
				const { results } = await get<Found>(path, { search: text, limit: most, basic: path === "insights/" || undefined }, signal);
				return results.slice(0, most).map((r) => ({ value: address(r), label: r.name || r.derived_name || "Untitled", detail }));
			}),
	);
	const list = [...pages, ...lists.flatMap((l) => (l.status === "fulfilled" ? l.value : []))];
	const lost = lists.find((l) => l.status === "rejected");
	return lost ? { list, error: lost.reason } : list;
}
