import { isWrapper, type QueryNode } from "../api/query";

/** A query without the nodes around it. `settings` is the DataVisualizationNode, if there is one, which says how to draw rows. */
export function unwrap(query: QueryNode): { query: QueryNode; settings?: QueryNode } {
	let settings: QueryNode | undefined;
	let node = query;
	while (isWrapper(node)) {
		if (node.kind === "DataVisualizationNode") settings = node;
		node = node.source;
	}
	return { query: node, settings };
}
