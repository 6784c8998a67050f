import { clock, projectZone } from "../../data/time";
import { Dialog } from "../../ui/dialog";
import { counted, number } from "../../ui/format";
import { Table } from "../../ui/table";
import type { Import, Report } from "./api";

/** What an import did: numbers, unknown fields, and bad lines. */
export function ReportDialog({ of, onClose }: { of: Import; onClose: () => void }) {
	return (
		<Dialog title={of.filename || "Import"} onClose={onClose} wide>
			<div class="stack">
				{of.error && (
					<p class="mistake" role="alert">
						{of.error}
					</p>
				)}
				{of.dry_run && <p class="notice">This was a dry run: nothing was written.</p>}
				{of.report && <Parts report={of.report} />}
			</div>
		</Dialog>
	);
}

function Parts({ report }: { report: Report }) {
	const unknown = report.unknown_fields ?? [];
	const bad = report.bad_lines ?? [];
	const columns = report.columns_as_properties ?? [];
	const learned = report.learned_properties ?? [];
	return (
		<>
			<dl class="figures">
				<Figure name="Events" value={number(report.events)} />
				<Figure name="There before" value={number(report.duplicates)} />
				{counts(report).map(([name, count]) => count > 0 && <Figure key={name} name={name} value={number(count)} />)}
				<Figure name="New people" value={number(report.new_people)} />
				<Figure name="Bad lines" value={number(report.bad)} />
				{report.format && <Figure name="Format" value={report.format} />}
			</dl>
			{report.first_timestamp && report.last_timestamp && (
				<p>
					Events from {clock(report.first_timestamp, projectZone())} to {clock(report.last_timestamp, projectZone())}.
				</p>
			)}
			{columns.length > 0 && <p>Columns that became properties: {columns.join(", ")}.</p>}
			{unknown.length > 0 && (
				<>
					<h3>Unknown fields, which were ignored</h3>
					<Table
						label="Unknown fields"
						rows={unknown}
						keyOf={(field) => field.name}
						columns={[
							{ name: "name", title: "Field", cell: (field) => <code>{field.name}</code> },
							{ name: "lines", title: "Lines", number: true, cell: (field) => number(field.lines) },
							{ name: "meant", title: "Did you mean", cell: (field) => field.did_you_mean && <code>{field.did_you_mean}</code> },
						]}
					/>
					{report.more_unknown_fields && <p class="hint">{counted(report.more_unknown_fields, "more field")} of this kind.</p>}
				</>
			)}
			{bad.length > 0 && (
				<>
					<h3>{report.bad > bad.length ? `The first ${counted(bad.length, "bad line")}` : "Bad lines"}</h3>
					<Table
						label="Bad lines"
						rows={bad}
						keyOf={(line, i) => `${line.line} ${i}`}
						columns={[
							{ name: "line", title: "Line", number: true, cell: (line) => number(line.line) },
							{ name: "reason", title: "Reason", cell: (line) => line.reason },
						]}
					/>
				</>
			)}
			{learned.length > 0 && <p>New types of properties: {learned.map((p) => `${p.name} ${p.as}`).join(", ")}.</p>}
		</>
	);
}

/** What few imports have, so that zeros are not shown. */
const counts = (report: Report): [name: string, count: number][] => [
	["Older than the project keeps", report.too_old_events ?? 0],
	["Lines of people", report.persons],
	["People deleted in the export", report.skipped ?? 0],
	["People merged", report.merged_people],
	["Lines of groups", report.groups],
	["Properties left out", report.left_out_properties],
];

function Figure({ name, value }: { name: string; value: string }) {
	return (
		<div>
			<dt>{name}</dt>
			<dd>{value}</dd>
		</div>
	);
}
