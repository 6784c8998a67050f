// The parts of ECharts that the charts use. It is a chunk of its own, loaded with the first chart.
import { BarChart, BoxplotChart, LineChart, PieChart, SankeyChart, ScatterChart } from "echarts/charts";
import { GraphicComponent, GridComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { LabelLayout } from "echarts/features";
import { CanvasRenderer } from "echarts/renderers";

use([
	BarChart,
	BoxplotChart,
	LineChart,
	PieChart,
	SankeyChart,
	ScatterChart,
	GraphicComponent,
	GridComponent,
	MarkLineComponent,
	TooltipComponent,
	LabelLayout,
	CanvasRenderer,
]);

export { init };
