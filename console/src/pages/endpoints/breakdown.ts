import { text } from "../../ui/format";
import type { Span, UsageWindows } from "./api";

/** A customer as a text: what a key fixes, by name, such as "customer_id = acme, plan = free". */
export const customerText = (variables: Record<string, unknown>): string =>
	Object.entries(variables)
		.map(([name, value]) => `${name} = ${text(value)}`)
		.join(", ");

/** Those that had calls in a time, with the most calls first. */
export const usedIn = <T extends UsageWindows>(rows: readonly T[], span: Span): T[] =>
	rows.filter((row) => row[span].calls > 0).sort((a, b) => b[span].calls - a[span].calls);
