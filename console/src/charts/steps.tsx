import { number } from "../ui/format";
import { classes } from "../ui/basics";
import type { Behind, Reference, Step, StepBar } from "./model";
import { seriesToken } from "./parts";
import { CellText } from "./sheet";
import { share, span } from "./values";

/** The steps of a funnel: a bar for each value, as tall as the share of those who got so far from the first step, or from the one before. */
export function StepsView({
	steps,
	sideways,
	reference,
	small,
	height,
	label,
	onBehind,
}: {
	steps: Step[];
	sideways: boolean;
	reference: Reference;
	small: boolean;
	height: number;
	label: string;
	onBehind?: (behind: Behind) => void;
}) {
	return (
		<section class="chart-scroll" tabIndex={0} aria-label={label}>
			<ol class={classes("chart-steps", sideways && "chart-steps-down", small && "chart-steps-small")}>
				{steps.map((step, i) => (
					<li key={i} class="chart-step">
						<div class="chart-step-head">
							<span class="chart-step-number">{i + 1}</span>
							<span class="chart-step-name" title={step.name}>
								{step.name}
							</span>
							{step.optional && <span class="chart-step-soft">optional</span>}
						</div>
						<Bars bars={step.bars} sideways={sideways} height={height} onBehind={onBehind} />
						{step.bars.map((bar, b) => (
							<StepText key={b} bar={bar} first={i === 0} reference={reference} onBehind={onBehind} />
						))}
					</li>
				))}
			</ol>
		</section>
	);
}

function Bars({
	bars,
	sideways,
	height,
	onBehind,
}: {
	bars: StepBar[];
	sideways: boolean;
	height: number;
	onBehind?: (behind: Behind) => void;
}) {
	return (
		<div class="chart-bars" style={sideways ? undefined : { height: `${height}px` }}>
			{bars.map((bar, b) => {
				const size = `${Math.max(bar.count > 0 ? 0.5 : 0, bar.drawn * 100)}%`;
				const style = { backgroundColor: seriesToken(bar.colour), [sideways ? "width" : "height"]: size };
				const { reached, lost } = bar;
				const title = `${bar.name ? `${bar.name}: ` : ""}${number(bar.count)} (${share(bar.drawn, 1)})`;
				return (
					<div key={b} class="chart-bar-track">
						{onBehind && lost && bar.dropped > 0 ? (
							<button
								type="button"
								tabIndex={-1}
								aria-hidden="true"
								class="chart-bar-lost"
								title={`${number(bar.dropped)} dropped off`}
								onClick={() => onBehind(lost())}
							/>
						) : (
							<span class="chart-bar-lost" />
						)}
						{onBehind && reached && bar.count > 0 ? (
							<button
								type="button"
								tabIndex={-1}
								aria-hidden="true"
								class="chart-bar"
								style={style}
								title={title}
								onClick={() => onBehind(reached())}
							/>
						) : (
							<span class="chart-bar" style={style} title={title} />
						)}
					</div>
				);
			})}
		</div>
	);
}

function StepText({
	bar,
	first,
	reference,
	onBehind,
}: {
	bar: StepBar;
	first: boolean;
	reference: Reference;
	onBehind?: (behind: Behind) => void;
}) {
	return (
		<p class="chart-step-text">
			{bar.name && (
				<span class="chart-step-value" title={bar.name}>
					<span class="chart-swatch" style={{ color: seriesToken(bar.colour) }} />
					{bar.name}
				</span>
			)}
			<span>
				<strong>
					<CellText cell={{ text: number(bar.count), behind: bar.count > 0 ? bar.reached : undefined }} onBehind={onBehind} />
				</strong>{" "}
				{share(bar.drawn, 1)}
			</span>
			{!first && (
				<span class="chart-step-soft">
					<CellText cell={{ text: `−${number(bar.dropped)}`, behind: bar.dropped > 0 ? bar.lost : undefined }} onBehind={onBehind} />{" "}
					dropped off, {reference === "previous" ? `${share(bar.ofFirst, 1)} of all got here` : `${share(bar.ofPrevious, 1)} went on`}
				</span>
			)}
			{bar.time !== null && <span class="chart-step-soft">median {span(bar.time)}</span>}
		</p>
	);
}
