import { When } from "../../data/time";
import { Badge } from "../../ui/basics";
import type { Cohort } from "./record";

/** Whether the members of a cohort are being computed, or when that was done. */
export function State({ cohort }: { cohort: Cohort }) {
	if (cohort.deleted) return <Badge tone="bad">Deleted</Badge>;
	if (cohort.is_calculating) return <Badge tone="accent">Calculating</Badge>;
	if (cohort.errors_calculating > 0) return <Badge tone="bad">Failed</Badge>;
	if (cohort.is_static) return <Badge>Static</Badge>;
	return <When time={cohort.last_calculation} relative />;
}
