import type { QueryNode, QueryResult } from "../../api/query";
import { counted, number } from "../../ui/format";
import { pathActors } from "../behind";
import { type Behind, colourAt, emptyPicture, type Picture } from "../model";
import { literal, shorten, span } from "../values";
import { base, tooltip } from "./axes";

interface Edge {
	source: string;
	target: string;
	value: number;
	average_conversion_time: number;
}

/** The number of a node's step, and its name. */
function parts(key: string): { step: number; name: string } {
	const found = /^(\d+)_([\s\S]*)$/.exec(key);
	return found ? { step: Number(found[1]), name: found[2] ?? "" } : { step: 1, name: key };
}

/** A node's name where room is short: of an address, the path. */
export function nodeName(key: string, most: number): string {
	const { name } = parts(key);
	const path = /^https?:\/\/[^/]+(\/.*)$/.exec(name)?.[1] ?? name;
	return shorten(path, most);
}

/** A PathsQuery as a sankey diagram. */
export function pathsPicture(query: QueryNode, result: QueryResult): Picture {
	const edges = ((Array.isArray(result.results) ? result.results : []) as Edge[]).filter((e) => e.value > 0);
	if (edges.length === 0) return emptyPicture("There are no paths", "Nobody went from one step to another in the date range.");
	const keys = [...new Set(edges.flatMap((e) => [e.source, e.target]))];
	const steps = Math.max(...keys.map((key) => parts(key).step));
	const tallest = Math.max(...Array.from({ length: steps }, (_, i) => keys.filter((key) => parts(key).step === i + 1).length));
	const names = [...new Set(keys.map((key) => parts(key).name))];
	const flow = (key: string): number => {
		const sum = (of: "source" | "target") => edges.reduce((total, e) => total + (e[of] === key ? e.value : 0), 0);
		return Math.max(sum("source"), sum("target"));
	};
	const behindEdge = (e: Edge): Behind => ({
		title: `${parts(e.source).name} → ${parts(e.target).name}, step ${parts(e.source).step} to ${parts(e.target).step}`,
		source: pathActors(query, { start: e.source, end: e.target }),
	});
	const behindNode = (key: string): Behind => ({
		title: `${parts(key).name}, step ${parts(key).step}`,
		source: pathActors(query, { end: key }),
	});
	return {
		label: `Paths of ${counted(steps, "step")} over ${counted(keys.length, "place")}. The heaviest goes from ${parts(edges[0]?.source ?? "").name} to ${parts(edges[0]?.target ?? "").name}: ${number(edges[0]?.value ?? 0)}`,
		sheet: {
			columns: [
				{ title: "Step", number: true },
				{ title: "From" },
				{ title: "To" },
				{ title: "Paths", number: true },
				{ title: "Average time", number: true },
			],
			rows: edges.map((e) => [
				{ text: String(parts(e.source).step) },
				{ text: parts(e.source).name, behind: () => behindNode(e.source) },
				{ text: parts(e.target).name, behind: () => behindNode(e.target) },
				{ text: number(e.value), behind: () => behindEdge(e) },
				{ text: span(e.average_conversion_time / 1000) },
			]),
		},
		body: {
			is: "plot",
			height: Math.max(280, tallest * 38 + 20),
			minWidth: steps * 130,
			pick: ({ type, data }) => {
				if (type === "edge") {
					const { source, target } = data as Edge;
					const edge = edges.find((e) => e.source === source && e.target === target);
					return edge && behindEdge(edge);
				}
				return behindNode(String((data as { name: string }).name));
			},
			option: (paint, room) => ({
				...base(paint),
				tooltip: tooltip(paint, {
					trigger: "item",
					formatter: (p: { dataType: string; data: Edge & { name: string } }) => {
						if (p.dataType !== "edge") return `${literal(shorten(parts(p.data.name).name, 60))}\n${counted(flow(p.data.name), "path")}`;
						const edge = edges.find((e) => e.source === p.data.source && e.target === p.data.target);
						const from = literal(shorten(parts(p.data.source).name, 60));
						const to = literal(shorten(parts(p.data.target).name, 60));
						return `${from}\n→ ${to}\n${counted(p.data.value, "path")}, ${span((edge?.average_conversion_time ?? 0) / 1000)} on average`;
					},
				}),
				series: [
					{
						id: "paths",
						type: "sankey",
						left: 4,
						right: 4,
						top: 6,
						bottom: 6,
						nodeWidth: 14,
						nodeGap: 14,
						nodeAlign: "left",
						draggable: false,
						layoutIterations: edges.length > 200 ? 8 : 32,
						emphasis: { focus: "adjacency" },
						data: keys.map((key) => ({
							name: key,
							depth: parts(key).step - 1,
							itemStyle: { color: colourAt(paint, names.indexOf(parts(key).name)), borderWidth: 0 },
							label: { position: parts(key).step === steps ? "left" : "right" },
						})),
						links: edges.map((e) => ({ source: e.source, target: e.target, value: e.value })),
						lineStyle: { color: "source", opacity: 0.22, curveness: 0.5 },
						label: {
							color: paint.text,
							fontSize: 11,
							formatter: (p: { name: string }) => `${literal(nodeName(p.name, room.width > 700 ? 26 : 15))}  ${number(flow(p.name))}`,
						},
						labelLayout: { hideOverlap: true },
					},
				],
			}),
		},
	};
}
