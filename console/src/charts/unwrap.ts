import type { QueryNode } from "../api/query";

const wrappers = new Set(["InsightVizNode", "DataTableNode", "DataVisualizationNode"]);

/** A query without the nodes around it. `settings` is the DataVisualizationNode, if there is one, which says how to draw rows. */
export function unwrap(query: QueryNode): { query: QueryNode; settings?: QueryNode } {
	let settings: QueryNode | undefined;
	let node = query;
	for (let depth = 0; depth < 5 && wrappers.has(node.kind); depth++) {
		const source = node.source as QueryNode | undefined;
		if (!source?.kind) break;
		if (node.kind === "DataVisualizationNode") settings = node;
		node = source;
	}
	return { query: node, settings };
}
