import { number } from "./format";

/** Numbers over time as a small line, for lists. `label` says what they are. */
export function Sparkline({
	numbers,
	label,
	colour = 0,
	width = 96,
	height = 24,
}: {
	/** Oldest first; null where there is none. */
	numbers: readonly (number | null)[];
	label: string;
	/** The place of its colour among those of series. */
	colour?: number;
	width?: number;
	height?: number;
}) {
	const known = numbers.filter((n) => n !== null);
	const last = known.at(-1);
	const said = last === undefined ? `${label}: nothing` : `${label}: ${number(last)} at last, at most ${number(Math.max(...known))}`;
	return (
		<svg class="sparkline" role="img" aria-label={said} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
			<path class="sparkline-base" d={`M0,${height - 0.5}H${width}`} />
			<path d={sparkPath(numbers, width, height)} style={{ stroke: `var(--series-${(colour % 10) + 1})` }} />
		</svg>
	);
}

/** The line through numbers in a box, from zero or the least number up. It is broken where there is none. */
export function sparkPath(numbers: readonly (number | null)[], width: number, height: number): string {
	const known = numbers.filter((n) => n !== null);
	if (known.length === 0) return "";
	const least = Math.min(0, ...known);
	const most = Math.max(least + 1e-9, ...known);
	const step = numbers.length > 1 ? width / (numbers.length - 1) : 0;
	const y = (n: number) => (height - 1.5 - ((n - least) / (most - least)) * (height - 3)).toFixed(1);
	if (numbers.length === 1) return `M0,${y(known[0] ?? 0)}H${width}`;
	let path = "";
	let broken = true;
	for (const [i, n] of numbers.entries()) {
		if (n === null) {
			broken = true;
			continue;
		}
		path += `${broken ? "M" : "L"}${(i * step).toFixed(1)},${y(n)}`;
		broken = false;
	}
	return path;
}
