import { useResource } from "../api/use";
import type { QueryNode } from "../api/query";
import { type Fields, withInner } from "./json";
import type { GroupKind } from "./maths";
import { groupName, groupTypes } from "./suggest";

/** Changes fields of a query; undefined takes one out. */
export type Change = (changes: Fields) => void;

/** What the form of a kind gets. */
export interface FormProps {
	query: QueryNode;
	change: Change;
	/** The types of groups that the project has. */
	groups: readonly GroupKind[];
}

/** Changes fields of one of a query's own objects, such as trendsFilter. */
export function inner({ query, change }: FormProps, name: string): Change {
	return (changes) => {
		const next = withInner(query, name, changes);
		if (next !== query) change({ [name]: next[name] });
	};
}

/** The types of groups that the project has; none while they are being loaded. */
export function useGroups(): readonly GroupKind[] {
	const types = useResource(async () => {
		const all = await groupTypes();
		return all.map((g) => ({ index: g.group_type_index, name: groupName(g, true) }));
	}, []);
	return types.data ?? [];
}
