import { useMemo } from "preact/hooks";
import type { QueryResult } from "../api/query";
import { Checkbox, Field, Select } from "../ui/basics";
import { PictureView } from "./chart";
import { chosenColumns, numericColumns, readRows, type ResultSettings, resultPicture } from "./options/result";

export type { ResultSettings } from "./options/result";

const displays = [
	{ value: "ActionsTable", label: "Table" },
	{ value: "ActionsLineGraph", label: "Line" },
	{ value: "ActionsBar", label: "Bars" },
	{ value: "ActionsStackedBar", label: "Stacked bars" },
	{ value: "ActionsAreaGraph", label: "Area" },
	{ value: "ActionsPie", label: "Pie" },
	{ value: "BoldNumber", label: "Number" },
];

/** The rows of a query, drawn as `settings` say, with controls to change these. Settings are the fields `display` and `chartSettings` of a DataVisualizationNode. */
export function ResultChart({
	columns,
	types,
	rows,
	settings,
	onSettings,
	height,
	small,
}: {
	columns: string[];
	/** The types as the result has them: texts, or pairs of name and type. */
	types?: QueryResult["types"];
	rows: unknown[][];
	settings: ResultSettings;
	/** Without it there are no controls. */
	onSettings?: (settings: ResultSettings) => void;
	height?: number;
	small?: boolean;
}) {
	const result = useMemo((): QueryResult => ({ results: rows, columns, types }), [rows, columns, types]);
	const picture = useMemo(() => resultPicture(result, settings), [result, settings]);
	return (
		<div class="chart-result">
			{onSettings && <Controls result={result} settings={settings} onSettings={onSettings} />}
			<PictureView picture={picture} height={height} small={small} switchable={!small} />
		</div>
	);
}

function Controls({
	result,
	settings,
	onSettings,
}: {
	result: QueryResult;
	settings: ResultSettings;
	onSettings: (settings: ResultSettings) => void;
}) {
	const data = useMemo(() => readRows(result), [result]);
	const display = settings.display ?? "ActionsTable";
	const chart = settings.chartSettings ?? {};
	const { x, y, series } = useMemo(() => chosenColumns(data, settings), [data, settings]);
	const numbers = numericColumns(data);
	const change = (next: NonNullable<ResultSettings["chartSettings"]>) => onSettings({ ...settings, chartSettings: { ...chart, ...next } });
	const toggle = (column: string, on: boolean) =>
		change({ yAxis: on ? [...y, { column }] : y.filter((c) => c.column !== column), seriesBreakdownColumn: series });
	const choices = (names: string[]) => names.map((name) => ({ value: name, label: name }));
	const axes = display !== "ActionsTable" && display !== "BoldNumber";
	const first = y[0]?.column ?? "";
	const single = display === "ActionsPie" || display === "BoldNumber";
	return (
		<div class="chart-controls">
			<Field label="Chart">
				{(id) => <Select id={id} value={display} choices={displays} onValue={(next) => onSettings({ ...settings, display: next })} />}
			</Field>
			{axes && (
				<Field label={display === "ActionsPie" ? "Slices" : "X axis"}>
					{(id) => <Select id={id} value={x} choices={choices(data.columns)} onValue={(column) => change({ xAxis: { column } })} />}
				</Field>
			)}
			{display !== "ActionsTable" && single && (
				<Field label="Number">
					{(id) => <Select id={id} value={first} choices={choices(numbers)} onValue={(column) => change({ yAxis: [{ column }] })} />}
				</Field>
			)}
			{axes && !single && (
				<>
					<fieldset class="field chart-columns">
						<legend>Numbers</legend>
						{numbers
							.filter((name) => name !== x && name !== series)
							.map((name) => (
								<Checkbox
									key={name}
									label={name}
									checked={y.some((c) => c.column === name)}
									disabled={y.length === 1 && first === name}
									onValue={(on) => toggle(name, on)}
								/>
							))}
					</fieldset>
					<Field label="A series for each">
						{(id) => (
							<Select
								id={id}
								value={series ?? ""}
								choices={[
									{ value: "", label: "Number" },
									...choices(data.columns.filter((name) => name !== x && !y.some((c) => c.column === name))),
								]}
								onValue={(column) => change({ seriesBreakdownColumn: column || null })}
							/>
						)}
					</Field>
					{(display === "ActionsStackedBar" || display === "ActionsAreaGraph") && (
						<Checkbox label="As shares" checked={chart.stackBars100 === true} onValue={(on) => change({ stackBars100: on })} />
					)}
				</>
			)}
		</div>
	);
}
