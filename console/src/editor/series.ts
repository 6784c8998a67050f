import { type Fields, fieldsOf, isFields, listOf, numberOf, textOf, withFields } from "./json";
import type { Entity } from "./suggest";

/** What a node of a series counts; null for a group of events. */
export function entityOf(node: Fields): Entity | null {
	switch (node.kind) {
		case "ActionsNode":
			return { action: numberOf(Number(node.id)) ?? 0, name: textOf(node.name) };
		case "GroupNode":
			return null;
	}
	return { event: typeof node.event === "string" ? node.event : null };
}

/** A node that counts something else. Its filters, math and own name stay. */
export function withEntity(node: Fields, entity: Entity): Fields {
	if ("action" in entity) {
		return withFields(node, {
			kind: "ActionsNode",
			event: undefined,
			nodes: undefined,
			operator: undefined,
			id: entity.action,
			name: entity.name || undefined,
		});
	}
	const named = node.name !== undefined || node.kind !== "EventsNode";
	return withFields(node, {
		kind: "EventsNode",
		id: undefined,
		nodes: undefined,
		operator: undefined,
		event: entity.event,
		name: named ? (entity.event ?? "All events") : undefined,
	});
}

/** A new node. */
export function newSeries(entity: Entity): Fields {
	return "action" in entity
		? { kind: "ActionsNode", id: entity.action, ...(entity.name && { name: entity.name }) }
		: { kind: "EventsNode", event: entity.event };
}

/** The nodes of a group; the node itself where it is none. */
export function nodesOf(node: Fields): Fields[] {
	return node.kind === "GroupNode" ? listOf(node.nodes).map(fieldsOf) : [node];
}

/** A node of several events, any of which may match. One alone is no group. The filters and the math are those of the whole. */
export function withNodes(node: Fields, nodes: Fields[]): Fields {
	const [only] = nodes;
	if (only && nodes.length === 1) {
		const entity = entityOf(only);
		const filters = [...listOf(only.properties), ...listOf(node.properties)];
		const out = entity ? withEntity(node, entity) : node;
		return filters.length > 0 ? withFields(out, { properties: filters }) : out;
	}
	if (node.kind === "GroupNode") return withFields(node, { nodes });
	return withFields(node, { kind: "GroupNode", event: undefined, id: undefined, name: undefined, operator: "OR", nodes });
}

/** The letter of a series in formulas: A, B, …, Z, AA. */
export function letterOf(at: number): string {
	const last = String.fromCharCode(65 + (at % 26));
	return at < 26 ? last : letterOf(Math.floor(at / 26) - 1) + last;
}

/** The events of a node by their names; empty for actions and all events. */
export function eventsOf(node: Fields): string[] {
	return nodesOf(node).flatMap((n) => (typeof n.event === "string" ? [n.event] : []));
}

/** What an event of a retention counts: $pageview where there is none. */
export function retentionEntity(node: unknown): Entity {
	if (!isFields(node)) return { event: "$pageview" };
	if (node.type === "actions" || node.kind === "ActionsNode") {
		const id = numberOf(Number(node.id ?? Number.NaN));
		return id === null ? { event: null } : { action: id, name: textOf(node.name) };
	}
	return { event: typeof node.id === "string" ? node.id : null };
}

/** An event of a retention that is another one. */
export function withRetentionEntity(node: unknown, entity: Entity): Fields {
	const before = fieldsOf(node);
	const action = "action" in entity;
	return withFields(before, {
		id: action ? entity.action : entity.event,
		name: action ? entity.name : (entity.event ?? "All events"),
		type: action ? "actions" : "events",
		kind: before.kind === undefined ? undefined : action ? "ActionsNode" : "EventsNode",
	});
}

/** A node of a series as the event of a retention. Of a group of events it is the first. */
export function asRetentionEntity(series: Fields): Fields {
	const node = nodesOf(series)[0] ?? series;
	const out = withRetentionEntity({}, entityOf(node) ?? { event: null });
	const filters = node === series ? node.properties : [...listOf(node.properties), ...listOf(series.properties)];
	return withFields(out, {
		custom_name: textOf(series.custom_name) || undefined,
		properties: Array.isArray(filters) && filters.length === 0 ? undefined : filters,
	});
}

/** The event of a retention as a node of a series. */
export function asSeries(entity: unknown): Fields {
	const node = fieldsOf(entity);
	return withFields(newSeries(retentionEntity(entity)), {
		custom_name: textOf(node.custom_name) || undefined,
		properties: node.properties ?? undefined,
	});
}
