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
