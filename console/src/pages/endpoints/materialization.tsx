import { useState } from "preact/hooks";
import { get, post } from "../../api/client";
import { usePoll, useResource } from "../../api/use";
import { When } from "../../data/time";
import { can } from "../../session";
import { Badge, Button, Card, Field, Loaded, Select } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { ago, duration } from "../../ui/format";
import { changeEndpoint, type Materialization, pathOf, type Preview, type Version, versionChoices } from "./api";
import type { TabProps } from "./endpoint";

const words: Record<string, string> = {
	Running: "The table is being filled.",
	Completed: "The table is there.",
	Failed: "The last fill failed; it is tried again.",
	Modified: "The query has changed since the table was filled, so runs ask the query itself until it is filled again.",
};

const tones: Record<string, "good" | "warn" | "bad" | "accent"> = { Running: "accent", Completed: "good", Failed: "bad", Modified: "warn" };

/** The parts of time by which a column can be kept. */
const buckets = ["minute", "fifteen_minutes", "hour", "day", "week", "month"];

/** Milliseconds between two looks at a table that is being filled. */
const patience = 2000;

/** The table of a version: whether there is one, whether there can be one, and how runs read it. */
export function MaterializationTab({ endpoint, versions, reload }: TabProps) {
	const [wanted, setWanted] = useState("");
	const version = versions.find((v) => String(v.version) === wanted) ?? versions.find((v) => v.is_current);
	const number = version?.version ?? endpoint.current_version;
	const status = useResource(
		(signal) => get<Materialization>(pathOf(endpoint.name, "materialization_status/"), { version: number }, signal),
		[endpoint.name, number, endpoint.updated_at],
	);
	usePoll(status, patience, status.data?.status === "Running");
	return (
		<div class="endpoints-stack">
			<Card
				title="Table"
				actions={
					<Field label="Version" inline>
						{(id) => <Select id={id} value={String(number)} choices={versionChoices(versions)} onValue={setWanted} />}
					</Field>
				}
			>
				<Loaded of={status}>
					{(data) => (
						<Status
							name={endpoint.name}
							version={number}
							freshness={version?.data_freshness_seconds ?? endpoint.data_freshness_seconds}
							status={data}
							onChanged={() => {
								status.reload();
								reload();
							}}
						/>
					)}
				</Loaded>
			</Card>
			{version && <PreviewCard key={number} name={endpoint.name} version={version} onChanged={reload} />}
			<Conditions />
		</div>
	);
}

function Status({
	name,
	version,
	freshness,
	status,
	onChanged,
}: {
	name: string;
	version: number;
	freshness: number;
	status: Materialization;
	onChanged: () => void;
}) {
	const turn = async (on: boolean) => {
		const done = on ? "The table is being filled" : "Runs ask the query itself now";
		if (await attempt(() => changeEndpoint(name, { version, is_materialized: on }), done)) onChanged();
	};
	if (!status.enabled) {
		return (
			<>
				<p>
					{status.can_materialize
						? `Runs ask the query itself. With a table, they read rows that are at most ${duration(freshness)} old.`
						: `This version cannot be materialized: ${status.reason}`}
				</p>
				<p class="endpoints-actions">
					<Button look="primary" disabled={!status.can_materialize || !can("endpoint:write")} onClick={() => turn(true)}>
						Materialize
					</Button>
				</p>
			</>
		);
	}
	return (
		<>
			<p>
				<Badge tone={tones[status.status ?? ""] ?? "plain"}>{status.status}</Badge> {words[status.status ?? ""]}{" "}
				{status.ready ? "Runs read it." : "Runs ask the query itself."}
			</p>
			{status.last_materialized_at && (
				<p class="hint">
					Its rows are of <When time={status.last_materialized_at} /> ({ago(status.last_materialized_at)}). It is filled again before they
					are {duration(freshness)} old.
				</p>
			)}
			{status.error && <p class="mistake">{status.error}</p>}
			<p class="endpoints-actions">
				<Button look="danger" disabled={!can("endpoint:write")} onClick={() => turn(false)}>
					Drop the table
				</Button>
			</p>
		</>
	);
}

/** How the version would be, or is, materialized. Times can be kept by other parts than days. */
function PreviewCard({ name, version, onChanged }: { name: string; version: Version; onChanged: () => void }) {
	const [overrides, setOverrides] = useState<Record<string, string>>(version.bucket_overrides ?? {});
	const preview = useResource(
		async () => await post<Preview>(pathOf(name, "materialization_preview/"), { version: version.version, bucket_overrides: overrides }),
		[name, version.version, JSON.stringify(overrides)],
	);
	const set = (column: string, bucket: string) => {
		const { [column]: _, ...others } = overrides;
		setOverrides(bucket ? { ...others, [column]: bucket } : others);
	};
	const changed = JSON.stringify(overrides) !== JSON.stringify(version.bucket_overrides ?? {});
	const apply = async () => {
		const body = { version: version.version, is_materialized: true, bucket_overrides: overrides };
		if (await attempt(() => changeEndpoint(name, body), "The table is being filled")) onChanged();
	};
	return (
		<Card title="Preview">
			<Loaded of={preview}>
				{(data) =>
					data.can_materialize ? (
						<div class="endpoints-stack">
							{data.transformed_query && <Query title="What fills the table" text={data.transformed_query} />}
							{data.display_execution_query && <Query title="What a run reads" text={data.display_execution_query} />}
							{data.aggregates.some((a) => a.reaggregate_fn) && (
								<p class="hint">
									Put together from the rows of the table:{" "}
									{data.aggregates
										.filter((a) => a.reaggregate_fn)
										.map((a) => `${a.expression} by ${a.reaggregate_fn}`)
										.join(", ")}
									.
								</p>
							)}
							{rangeColumns(data).map((column) => (
								<Field key={column} label={`Keep ${column} by`} inline>
									{(id) => (
										<Select
											id={id}
											value={overrides[column] ?? ""}
											choices={[
												{ value: "", label: "default (a day for times)" },
												...buckets.map((b) => ({ value: b, label: b.replace("_", " ") })),
											]}
											onValue={(bucket) => set(column, bucket)}
										/>
									)}
								</Field>
							))}
							{changed && (
								<p class="endpoints-actions">
									<Button disabled={!can("endpoint:write")} onClick={apply}>
										Materialize like this
									</Button>
								</p>
							)}
						</div>
					) : (
						<p>{data.reason}</p>
					)
				}
			</Loaded>
		</Card>
	);
}

/** The columns that ranges compare, of which each has a part of time. */
function rangeColumns({ range_pairs }: Preview): string[] {
	return [...new Set(range_pairs.map((pair) => pair.column))];
}

function Query({ title, text }: { title: string; text: string }) {
	return (
		<div>
			<h3>{title}</h3>
			<pre class="endpoints-raw" tabIndex={0} role="group" aria-label={title}>
				{text}
			</pre>
		</div>
	);
}

function Conditions() {
	const conditions = useResource(
		(signal) => get<{ conditions_source: string; rewrite_contract: string }>("endpoints/materialization_conditions/", {}, signal),
		[],
	);
	if (!conditions.data) return null;
	return (
		<Card title="Which queries can be materialized">
			<p class="endpoints-conditions">{conditions.data.conditions_source}</p>
		</Card>
	);
}
