import { type Fields, fieldsOf, numberOf, withFields } from "./json";

/** What names steps by their numbers, once there are more or fewer. */
export function fitted(filter: Fields, before: number, after: number): Fields {
	if (before === after || Object.keys(filter).length === 0) return {};
	const last = (n: number | null) => (n === null ? undefined : n === before - 1 || n > after - 1 ? after - 1 : n);
	const changes: Fields = {};
	const [from, to] = [numberOf(filter.funnelFromStep), numberOf(filter.funnelToStep)];
	if (to !== null) changes.funnelToStep = last(to);
	if (from !== null) changes.funnelFromStep = Math.min(from, after - 2);
	const step = numberOf(filter.breakdownAttributionValue);
	if (step !== null && step > after - 1) changes.breakdownAttributionValue = after - 1;
	if (Array.isArray(filter.exclusions)) {
		changes.exclusions = filter.exclusions.map((e) => {
			const node = fieldsOf(e);
			const end = last(numberOf(node.funnelToStep)) ?? after - 1;
			return withFields(node, { funnelToStep: end, funnelFromStep: Math.min(numberOf(node.funnelFromStep) ?? 0, end - 1) });
		});
	}
	return Object.keys(changes).length > 0 ? { funnelsFilter: withFields(filter, changes) } : {};
}

/** The exclusions of an unordered funnel are those of all its steps. */
export function exclusionsFor(filter: Fields, order: string, steps: number): Fields {
	if (order !== "unordered" || !Array.isArray(filter.exclusions)) return {};
	return { exclusions: filter.exclusions.map((e) => withFields(fieldsOf(e), { funnelFromStep: 0, funnelToStep: steps - 1 })) };
}
