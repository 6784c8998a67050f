import { Sparkline } from "../ui/sparkline";
import { classes } from "../ui/basics";
import type { Behind, Figure, Heat, HeatCell, LegendEntry } from "./model";
import { signedShare } from "./options/totals";
import { CellText } from "./sheet";

/** The colour of a series by its place, as the name of a token. */
export const seriesToken = (place: number): string => `var(--series-${(place % 10) + 1})`;

/** Large numbers. */
export function FiguresView({ figures, small, onBehind }: { figures: Figure[]; small: boolean; onBehind?: (behind: Behind) => void }) {
	return (
		<dl class={classes("chart-figures", figures.length === 1 && "chart-figures-one", small && "chart-figures-small")}>
			{figures.map((f, i) => (
				<div key={i} class="chart-figure">
					<dt>{f.name}</dt>
					<dd>
						<span class="chart-figure-text">
							<CellText cell={f} onBehind={onBehind} />
						</span>
						{f.change !== undefined && <Change figure={f} />}
					</dd>
					{f.points && (
						<dd>
							<Sparkline numbers={f.points} label={`${f.name} over time`} colour={f.colour} width={160} height={36} />
						</dd>
					)}
				</div>
			))}
		</dl>
	);
}

function Change({ figure }: { figure: Figure }) {
	const { change, previous, inverse } = figure;
	const up = (change ?? 0) > 0;
	const tone = !change ? "" : up !== (inverse === true) ? "chart-change-good" : "chart-change-bad";
	return (
		<span class={classes("chart-change", tone)}>
			{change === null || change === undefined ? "Change unknown" : `${up ? "▲" : change < 0 ? "▼" : ""} ${signedShare(change)}`}
			{previous !== undefined && <small> before: {previous}</small>}
		</span>
	);
}

/** The names of series with their colours. A click hides or shows one. */
export function LegendView({
	entries,
	hidden,
	onToggle,
}: {
	entries: LegendEntry[];
	hidden: ReadonlySet<number>;
	onToggle: (place: number) => void;
}) {
	return (
		<ul class="chart-legend" aria-label="Series">
			{entries.map((e, i) => (
				<li key={i}>
					<button type="button" aria-pressed={!hidden.has(i)} onClick={() => onToggle(i)} title={hidden.has(i) ? "Show" : "Hide"}>
						<span class={classes("chart-swatch", e.dashed && "chart-swatch-dashed")} style={{ color: seriesToken(e.colour) }} />
						<span class="chart-legend-name">{e.name}</span>
					</button>
				</li>
			))}
		</ul>
	);
}

/** A heat map: a table whose cells are the darker the larger their number. */
export function HeatView({ heat, label, onBehind }: { heat: Heat; label: string; onBehind?: (behind: Behind) => void }) {
	return (
		<section class="chart-scroll" tabIndex={0} aria-label={label}>
			<table class="chart-heat">
				<thead>
					<tr>
						{heat.heads.map((head, i) => (
							<th key={i} scope="col" class="chart-heat-head">
								{head}
							</th>
						))}
						{heat.columns.map((column, i) => (
							<th key={i} scope="col">
								{column}
							</th>
						))}
					</tr>
				</thead>
				{heat.groups.map((group, g) => (
					<tbody key={g}>
						{group.name && (
							<tr>
								<th scope="rowgroup" class="chart-heat-group" colSpan={heat.heads.length + heat.columns.length}>
									{group.name}
								</th>
							</tr>
						)}
						{group.rows.map((row, r) => (
							<tr key={r}>
								{row.heads.map((cell, i) =>
									i === 0 ? (
										<th key={i} scope="row" class="chart-heat-head">
											<CellText cell={cell} onBehind={onBehind} />
										</th>
									) : (
										<td key={i} class="chart-heat-size">
											<CellText cell={cell} onBehind={onBehind} />
										</td>
									),
								)}
								{row.cells.map((cell, i) => (
									<HeatCellView key={i} cell={cell} onBehind={onBehind} />
								))}
							</tr>
						))}
					</tbody>
				))}
			</table>
		</section>
	);
}

function HeatCellView({ cell, onBehind }: { cell: HeatCell; onBehind?: (behind: Behind) => void }) {
	const { heat } = cell;
	const style = heat === null ? undefined : { "--chart-heat": heat.toFixed(3) };
	return (
		<td
			class={classes("chart-heat-cell", heat !== null && "chart-heat-warm", cell.partial && "chart-heat-open")}
			style={style}
			title={cell.hint}
		>
			<CellText cell={cell} onBehind={onBehind} hint={cell.hint} />
		</td>
	);
}
