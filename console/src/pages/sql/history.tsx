import { useState } from "preact/hooks";
import { forget, history, type Run } from "../../sql/history";
import { Button, Empty, TextInput } from "../../ui/basics";
import { Dialog } from "../../ui/dialog";
import { ago, counted, duration } from "../../ui/format";

/** The queries that were run in this browser. */
export function History({ onRun, onClose }: { onRun: (run: Run) => void; onClose: () => void }) {
	const [runs, setRuns] = useState(history);
	const [search, setSearch] = useState("");
	const shown = runs.filter((run) => run.query.toLowerCase().includes(search.toLowerCase()));
	return (
		<Dialog title="History" side onClose={onClose}>
			<div class="stack">
				<TextInput type="search" aria-label="Find in the history" placeholder="Find a query" value={search} onValue={setSearch} />
				{shown.length === 0 && <Empty title="No queries">Queries that you run are kept in this browser.</Empty>}
				<ul class="sql-history">
					{shown.map((run) => (
						<li key={run.at}>
							<button type="button" onClick={() => onRun(run)}>
								<code>{run.query}</code>
								<small class={run.error ? "mistake" : undefined}>
									{ago(new Date(run.at).toISOString())} · {run.error ?? `${counted(run.rows ?? 0, "row")} in ${duration(run.seconds ?? 0)}`}
								</small>
							</button>
						</li>
					))}
				</ul>
				{runs.length > 0 && (
					<Button
						look="danger"
						onClick={() => {
							forget();
							setRuns([]);
						}}
					>
						Forget all
					</Button>
				)}
			</div>
		</Dialog>
	);
}
