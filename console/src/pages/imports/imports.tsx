import { useState } from "preact/hooks";
import { messageOf } from "../../api/client";
import { usePoll, useResource } from "../../api/use";
import { When } from "../../data/time";
import { can } from "../../session";
import { Badge, Button, Card, Checkbox, Empty, Field, Loaded, PageHead, Select } from "../../ui/basics";
import { attempt, toast } from "../../ui/dialog";
import { bytes, counted, number } from "../../ui/format";
import { AskBeforeLeaving } from "../../ui/leaving";
import { type Column, Pager, Table } from "../../ui/table";
import { formats, hasEnded, type Import, readImports, removeImport, sendFile, stateOf } from "./api";
import { ReportDialog } from "./report";

const limit = 20;

/** Milliseconds between two looks while an import runs. */
const interval = 1000;

/** Files of events and people that are imported over the API. */
export default function ImportsPage() {
	const [offset, setOffset] = useState(0);
	const [shown, setShown] = useState<Import | null>(null);
	const found = useResource((signal) => readImports(limit, offset, signal), [offset]);
	usePoll(
		found,
		interval,
		found.data?.results.some((one) => !hasEnded(one)),
	);
	const forget = (one: Import) =>
		attempt(
			async () => {
				await removeImport(one);
				found.reload();
			},
			hasEnded(one) ? "Removed from the list" : "Canceled",
		);
	return (
		<>
			<PageHead title="Imports" about="Files of events and people. Importing a file again adds nothing." />
			<div class="stack">
				{can("batch_import:write") && <Upload onSent={found.reload} />}
				<Card title="Imports">
					<Loaded of={found} rows={4}>
						{({ results, next, count }) =>
							results.length === 0 && offset === 0 ? (
								<Empty title="No imports over the API yet" />
							) : (
								<>
									<Table label="Imports" columns={columns(setShown, forget)} rows={results} keyOf={(one) => one.id} />
									<Pager offset={offset} limit={limit} count={count} more={next !== null} onOffset={setOffset} />
								</>
							)
						}
					</Loaded>
				</Card>
			</div>
			{shown && <ReportDialog of={shown} onClose={() => setShown(null)} />}
		</>
	);
}

function columns(show: (one: Import) => void, forget: (one: Import) => void): Column<Import>[] {
	return [
		{
			name: "file",
			title: "File",
			cell: (one) => (
				<>
					{one.filename || "Without a name"} {one.dry_run && <Badge>Dry run</Badge>}
				</>
			),
		},
		{
			name: "state",
			title: "State",
			cell: (one) => {
				const { tone, words } = stateOf(one);
				return <Badge tone={tone}>{words}</Badge>;
			},
		},
		{ name: "size", title: "Size", number: true, extra: true, cell: (one) => bytes(one.size) },
		{ name: "lines", title: "Lines", number: true, extra: true, cell: (one) => number(one.line) },
		{ name: "events", title: "Events", number: true, cell: (one) => number(one.report?.events ?? one.events) },
		{ name: "when", title: "Sent", extra: true, cell: (one) => <When time={one.created_at} relative /> },
		{
			name: "acts",
			title: <span class="visually-hidden">Actions</span>,
			cell: (one) => (
				<div class="actions">
					{(one.report || one.error) && (
						<Button small aria-label={`Report of ${one.filename}`} onClick={() => show(one)}>
							Report
						</Button>
					)}
					{can("batch_import:write") && !hasEnded(one) && (
						<Button small aria-label={`Cancel ${one.filename}`} onClick={() => forget(one)}>
							Cancel
						</Button>
					)}
				</div>
			),
		},
	];
}

/** The form that sends a file. */
function Upload({ onSent }: { onSent: () => void }) {
	const [file, setFile] = useState<File | null>(null);
	const [format, setFormat] = useState("");
	const [map, setMap] = useState("");
	const [dryRun, setDryRun] = useState(true);
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState("");
	const [imported, setImported] = useState<{ file: File | null; map: string }>({ file: null, map: "" });
	const unsent = (file !== null && file !== imported.file) || (map.trim() !== "" && map !== imported.map);
	const submit = async (event: Event) => {
		event.preventDefault();
		if (!file) return;
		setBusy(true);
		setWrong("");
		try {
			await sendFile({ file, filename: file.name, format, map: mapped(format) ? map : "", dryRun });
			toast("The file was sent");
			if (!dryRun) setImported({ file, map });
			onSent();
		} catch (error) {
			setWrong(messageOf(error));
		}
		setBusy(false);
	};
	return (
		<Card title="Import a file">
			<form class="form" onSubmit={submit}>
				<Field label="File" hint="NDJSON, CSV, Parquet, or an export of PostHog, Mixpanel or Amplitude, also compressed.">
					{(id) => <input id={id} type="file" required onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />}
				</Field>
				<Field label="Format">{(id) => <Select id={id} value={format} choices={formats} onValue={setFormat} />}</Field>
				{mapped(format) && (
					<Field
						label="Columns"
						hint="Which column is which field, one column=field in each line, such as when=timestamp. Only for CSV and Parquet."
					>
						{(id) => <textarea id={id} rows={3} spellcheck={false} value={map} onInput={(event) => setMap(event.currentTarget.value)} />}
					</Field>
				)}
				<Checkbox label="Dry run: check the file and say what it would bring, without writing" checked={dryRun} onValue={setDryRun} />
				{wrong && (
					<p class="mistake" role="alert">
						{wrong}
					</p>
				)}
				<div class="actions">
					<Button type="submit" look="primary" busy={busy} disabled={!file}>
						{dryRun ? "Check the file" : "Import the file"}
					</Button>
					{file && <span class="hint">{counted(file.size, "byte")}</span>}
				</div>
			</form>
			{unsent && <AskBeforeLeaving what="The file is not imported, and its columns are not kept." />}
		</Card>
	);
}

/** Whether files of a format have columns. */
const mapped = (format: string): boolean => format === "" || format === "csv" || format === "parquet";
