import { useEffect, useState } from "preact/hooks";
import { pending } from "../api/client";
import type { Behind, Country } from "./model";
import { CellText } from "./sheet";

type World = typeof import("./world");

let loading: Promise<World> | undefined;

function world(): Promise<World> {
	if (loading) return loading;
	pending.value++;
	loading = import("./world").finally(() => pending.value--);
	loading.catch(() => {
		loading = undefined;
	});
	return loading;
}

/** Numbers by country: the larger, the darker. Places without a shape are listed below. */
export function MapView({
	countries,
	label,
	height,
	onBehind,
}: {
	countries: Country[];
	label: string;
	height: number;
	onBehind?: (behind: Behind) => void;
}) {
	const [drawn, setDrawn] = useState<{ shapes: ReturnType<World["shapes"]>; box: string }>();
	const [failed, setFailed] = useState(false);
	useEffect(() => {
		world().then(
			(w) => setDrawn({ shapes: w.shapes(), box: `0 0 ${w.width} ${w.height}` }),
			() => setFailed(true),
		);
	}, []);
	if (failed) return <p class="mistake">The map could not be loaded. Reload the page to try again.</p>;
	if (!drawn) return <div style={{ height: `${height}px` }} />;
	const byCode = new Map(countries.map((c) => [c.code, c]));
	const most = Math.max(0, ...countries.filter((c) => /^[A-Z]{2}$/.test(c.code)).map((c) => c.value));
	const shaped = new Set(drawn.shapes.map((s) => s.code));
	const rest = countries.filter((c) => !shaped.has(c.code));
	return (
		<>
			<svg viewBox={drawn.box} role="img" aria-label={label} class="chart-map" style={{ maxHeight: `${height}px` }}>
				{drawn.shapes.map((s, i) => {
					const country = s.code === "" ? undefined : byCode.get(s.code);
					const behind = country?.behind;
					const heat = country && most > 0 ? 12 + Math.round((Math.sqrt(Math.max(0, country.value)) / Math.sqrt(most)) * 88) : 0;
					return (
						<path
							key={i}
							d={s.path}
							class={behind && onBehind ? "chart-clickable" : undefined}
							style={country ? { fill: `color-mix(in srgb, var(--series-1) ${heat}%, var(--line))` } : undefined}
							onClick={behind && onBehind ? () => onBehind(behind()) : undefined}
						>
							<title>{country ? `${country.name}: ${country.text}` : s.name}</title>
						</path>
					);
				})}
			</svg>
			{rest.length > 0 && (
				<p class="chart-note">
					Not on the map:{" "}
					{rest.map((c, i) => (
						<span key={c.code}>
							{i > 0 && ", "}
							{c.name} <CellText cell={c} onBehind={onBehind} />
						</span>
					))}
				</p>
			)}
		</>
	);
}
