import { session } from "../session";
import { ago } from "../ui/format";

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
	let found = formats.get(zone);
	if (!found) {
		found = new Intl.DateTimeFormat("sv", { timeZone: zone, dateStyle: "short", timeStyle: "medium" });
		formats.set(zone, found);
	}
	return found;
}

/** A time as 2026-05-03 14:05:09 in a time zone; the text as it is when it is no time. */
export function clock(time: string, zone: string): string {
	const at = new Date(time);
	return Number.isNaN(at.getTime()) ? time : formatOf(zone).format(at);
}

/** When a day such as 2026-05-03 begins in a time zone. That is not midnight where the clocks are put forward then. */
export function startOfDay(day: string, zone: string): string {
	const midnight = Date.parse(`${day}T00:00:00Z`);
	/** What clocks show, in milliseconds as if the zone were UTC. */
	const shown = (at: number) => Date.parse(`${clock(new Date(at).toISOString(), zone).replace(" ", "T")}Z`);
	const found = [midnight - 86_400_000, midnight + 86_400_000]
		.map((near) => midnight + near - shown(near)) // by how far the zone is from UTC before and after a change
		.toSorted((a, b) => a - b);
	const at = found.find((one) => shown(one) >= midnight) ?? midnight;
	return new Date(at).toISOString().replace(".000", "");
}

/** The project's time zone; UTC for keys that may not ask for it. */
export const projectZone = (): string => session.value?.project.timezone ?? "UTC";

/** A time in the project's time zone. */
export function When({
	time,
	relative,
	now,
}: {
	time: string | null | undefined;
	relative?: boolean;
	/** What ages are told from, in milliseconds; the clock if nothing. */
	now?: number;
}) {
	if (!time) return <span class="data-none">{relative ? "never" : "–"}</span>;
	const zone = projectZone();
	const text = clock(time, zone);
	const age = ago(time, now);
	return (
		<time dateTime={time} title={relative ? `${text} (${zone})` : `${zone}, ${age}`} class="data-time">
			{relative ? age : text}
		</time>
	);
}

/** Microseconds since 1970 of an ISO 8601 time of the API, which has up to six digits of a second. */
export function micros(time: string): number {
	const at = Date.parse(time);
	const fraction = /\.(\d+)/.exec(time)?.[1] ?? "";
	return Math.floor(at / 1000) * 1_000_000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}
