import type { ECharts } from "echarts/core";
import { useEffect, useRef, useState } from "preact/hooks";
import { pending } from "../api/client";
import { colour, dark } from "../theme";
import { classes } from "../ui/basics";
import type { Behind, Paint, Plot } from "./model";

/** The colours of the tokens as they are now. */
function paintOf(): Paint {
	return {
		text: colour("text"),
		soft: colour("text-soft"),
		line: colour("line"),
		surface: colour("surface"),
		raised: colour("raised"),
		accent: colour("accent"),
		good: colour("good"),
		bad: colour("bad"),
		series: Array.from({ length: 10 }, (_, i) => colour(`series-${i + 1}`)),
		font: colour("font"),
	};
}

let loading: Promise<typeof import("./engine")> | undefined;

/** The library, which is loaded once. The page is not ready before. */
function engine(): Promise<typeof import("./engine")> {
	if (loading) return loading;
	pending.value++;
	loading = import("./engine").finally(() => pending.value--);
	loading.catch(() => {
		loading = undefined;
	});
	return loading;
}

/** A chart on a canvas. Its numbers are in the table, for those who do not see it. */
export function PlotView({
	plot,
	label,
	height,
	small,
	hidden,
	onBehind,
}: {
	plot: Plot;
	label: string;
	height: number;
	small: boolean;
	hidden: ReadonlySet<number>;
	onBehind?: (behind: Behind) => void;
}) {
	const box = useRef<HTMLDivElement>(null);
	const [chart, setChart] = useState<ECharts>();
	const [failed, setFailed] = useState(false);
	const [width, setWidth] = useState(0);
	const now = useRef({ plot, small, hidden, onBehind, width });
	now.current = { plot, small, hidden, onBehind, width };

	useEffect(() => {
		let made: ECharts | undefined;
		let gone = false;
		engine().then(
			({ init }) => {
				if (gone || !box.current) return;
				made = init(box.current, null, { renderer: "canvas" });
				setWidth(box.current.clientWidth);
				setChart(made);
			},
			() => setFailed(true),
		);
		return () => {
			gone = true;
			made?.dispose();
		};
	}, []);

	useEffect(() => {
		if (!chart || !box.current) return;
		const element = box.current;
		const observer = new ResizeObserver(() => {
			if (element.clientWidth === 0) return;
			chart.resize();
			setWidth(element.clientWidth);
		});
		observer.observe(element);
		const stop = listen(chart, () => now.current);
		return () => {
			observer.disconnect();
			stop();
		};
	}, [chart]);

	const theme = dark.value;
	useEffect(() => {
		if (!chart || width === 0) return;
		chart.setOption(plot.option(paintOf(), { small, width, hidden }), { notMerge: true, lazyUpdate: true });
	}, [chart, plot, small, width > 0, width < 420, width > 700, hidden, theme]);

	const scrolls = plot.minWidth !== undefined;
	if (failed) return <p class="mistake">The chart could not be loaded. Reload the page to try again.</p>;
	return (
		<div
			class="chart-scroll"
			tabIndex={scrolls ? 0 : undefined}
			role={scrolls ? "group" : undefined}
			aria-label={scrolls ? label : undefined}
		>
			<div
				ref={box}
				role="img"
				aria-label={label}
				class={classes("chart-plot", !!onBehind && !!(plot.pick || plot.near) && "chart-clickable")}
				style={{ height: `${height}px`, minWidth: plot.minWidth ? `${plot.minWidth}px` : undefined }}
			/>
		</div>
	);
}

interface Now {
	plot: Plot;
	small: boolean;
	hidden: ReadonlySet<number>;
	width: number;
	onBehind?: (behind: Behind) => void;
}

/** Tells what is behind what is clicked: a shape, or the point next to a click on nothing. */
function listen(chart: ECharts, now: () => Now): () => void {
	let handled: unknown;
	const onShape = (params: unknown) => {
		const {
			seriesId = "",
			dataIndex = 0,
			data,
			dataType = "",
			event,
		} = params as {
			seriesId?: string;
			dataIndex?: number;
			data: unknown;
			dataType?: string;
			event?: { event: unknown };
		};
		const { plot, onBehind } = now();
		const behind = plot.pick?.({ series: seriesId, index: dataIndex, data, type: dataType });
		if (!behind) return;
		handled = event?.event;
		onBehind?.(behind);
	};
	const onPlace = (event: { offsetX: number; offsetY: number; event: unknown }) => {
		const { plot, onBehind, ...room } = now();
		if (!plot.near || !onBehind || event.event === handled) return;
		const at: [number, number] = [event.offsetX, event.offsetY];
		if (!chart.containPixel({ gridIndex: 0 }, at)) return;
		const index = Math.round(Number(chart.convertFromPixel({ xAxisIndex: 0 }, event.offsetX)));
		const behind = plot.near(index, (axis) => Number(chart.convertFromPixel({ yAxisIndex: axis }, event.offsetY)), room);
		if (behind) onBehind(behind);
	};
	chart.on("click", onShape);
	const surface = chart.getZr();
	// A click on a shape arrives there first.
	const later = (event: Parameters<typeof onPlace>[0]) => queueMicrotask(() => !chart.isDisposed() && onPlace(event));
	surface.on("click", later as never);
	return () => {
		if (chart.isDisposed()) return;
		chart.off("click", onShape);
		surface.off("click", later as never);
	};
}
