import type { Filter } from "../../data/events";
import { quoted } from "../../data/hogql";
import { counted } from "../../ui/format";

export type Matching = "contains" | "exact" | "regex";

/** One way in which an event matches an action: docs/actions.md, "Steps". */
export interface Step {
	event: string | null;
	properties: Filter[] | null;
	url: string | null;
	url_matching: Matching | null;
	selector: string | null;
	tag_name: string | null;
	text: string | null;
	text_matching: Matching | null;
	href: string | null;
	href_matching: Matching | null;
}

/** What an action is, as the API has it. */
export interface Action {
	id: number;
	name: string | null;
	description: string;
	tags: string[];
	steps: Step[];
	created_at: string;
	created_by: { first_name: string; email: string } | null;
	deleted: boolean;
	pinned_at: string | null;
	reference_count?: number;
}

/** The event whose elements a step can ask for. */
export const clicked = "$autocapture";

export const blankStep: Step = {
	event: null,
	properties: null,
	url: null,
	url_matching: "contains",
	selector: null,
	tag_name: null,
	text: null,
	text_matching: "exact",
	href: null,
	href_matching: "exact",
};

/** How a text of a step is compared when it does not say. */
export const usual = { url: "contains", text: "exact", href: "exact" } as const;

/** Reports whether every event matches a step. */
export function matchesAll(step: Step): boolean {
	return conditions(step).length === 0;
}

/**
 * The filters of a query that hold for the events that match one of some steps, before they are saved. No filters: every event matches.
 * The server compiles saved steps to the same conditions.
 */
export function filtersOf(steps: readonly Step[]): Filter[] {
	if (steps.length === 0 || steps.some(matchesAll)) return [];
	return [{ type: "OR", values: steps.map((step) => ({ type: "AND", values: conditions(step) })) }];
}

const hogql = (key: string): Filter => ({ type: "hogql", key });

function conditions(step: Step): Filter[] {
	const all: Filter[] = [];
	if (step.event) all.push(hogql(`event = ${quoted(step.event)}`));
	if (step.event === clicked) all.push(...clickConditions(step));
	if (step.url) all.push(hogql(compared("properties.$current_url", step.url, step.url_matching ?? usual.url, "like")));
	return [...all, ...(step.properties ?? [])];
}

function clickConditions(step: Step): Filter[] {
	const all: Filter[] = [];
	if (step.href !== null) all.push(hogql(compared("elements_chain_href", step.href, step.href_matching ?? usual.href, "ilike")));
	if (step.text !== null) {
		const one = compared("one", step.text, step.text_matching ?? usual.text, "ilike");
		all.push(hogql(`arrayExists(one -> ${one}, elements_chain_texts)`));
	}
	if (step.selector) all.push({ type: "element", key: "selector", operator: "exact", value: [step.selector] });
	if (step.tag_name !== null) all.push({ type: "element", key: "tag_name", operator: "exact", value: [step.tag_name] });
	return all;
}

function compared(field: string, text: string, how: Matching, like: "like" | "ilike"): string {
	if (how === "regex") return `${field} =~ ${quoted(text)}`;
	return how === "contains" ? `${field} ${like} ${quoted(`%${text}%`)}` : `${field} = ${quoted(text)}`;
}

const verbs: Record<Matching, string> = { contains: "contains", exact: "is", regex: "matches" };

/** A step in words. */
export function describe(step: Step): string {
	const parts: string[] = [];
	if (step.event === clicked) {
		if (step.selector) parts.push(`selector ${step.selector}`);
		if (step.tag_name !== null) parts.push(`tag ${step.tag_name}`);
		if (step.text !== null) parts.push(`text ${verbs[step.text_matching ?? usual.text]} “${step.text}”`);
		if (step.href !== null) parts.push(`link ${verbs[step.href_matching ?? usual.href]} “${step.href}”`);
	}
	if (step.url) parts.push(`URL ${verbs[step.url_matching ?? usual.url]} “${step.url}”`);
	const filters = step.properties?.length ?? 0;
	if (filters) parts.push(counted(filters, "filter"));
	const event = step.event ?? "Any event";
	return parts.length ? `${event} where ${parts.join(", ")}` : event;
}
