import { useState } from "preact/hooks";
import { get, messageOf, patch } from "../../api/client";
import { stringify } from "../../api/json";
import { type Resource, usePoll, useResource } from "../../api/use";
import { changedFields } from "../../data/draft";
import { References } from "../../data/references";
import { When } from "../../data/time";
import { LoadedPage } from "../../data/page";
import { navigate, pageAddress } from "../../router";
import { can } from "../../session";
import { Badge, Button, Card, Field, PageHead, Snippet, Tabs, TextArea, TextInput } from "../../ui/basics";
import { attempt, toast } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { number } from "../../ui/format";
import { AskBeforeLeaving } from "../../ui/leaving";
import { Menu } from "../../ui/menu";
import { type Group, criteriaOf, tidied } from "./criteria";
import { CriteriaEditor } from "./editor";
import { Members } from "./members";
import { NewCohort } from "./new";
import { type Cohort, nameOf } from "./record";
import { State } from "./state";

/** One cohort, or a new one. */
export default function CohortPage({ id }: { id: string }) {
	return id === "new" ? <NewCohort /> : <OneCohort id={id} />;
}

function OneCohort({ id }: { id: string }) {
	const found = useResource((signal) => get<Cohort>(`cohorts/${encodeURIComponent(id)}/`, {}, signal), [id]);
	const calculating = found.data?.is_calculating;
	usePoll(found, 1000, calculating);
	return (
		<LoadedPage of={found} title="Cohort">
			{(cohort) => <CohortDetails cohort={cohort} of={found} />}
		</LoadedPage>
	);
}

type View = "members" | "criteria" | "used";

function CohortDetails({ cohort, of }: { cohort: Cohort; of: Resource<Cohort> }) {
	const [wanted, setWanted] = useState<View>("members");
	const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
	const criteria = useCriteria(cohort, of.set);
	const choices: { value: View; label: string }[] = [
		...(can("person:read") ? [{ value: "members" as const, label: "Members" }] : []),
		...(cohort.is_static && !cohort.query ? [] : [{ value: "criteria" as const, label: cohort.is_static ? "Query" : "Criteria" }]),
		{ value: "used", label: `Used by (${number(cohort.reference_count ?? cohort.used_by?.length ?? 0)})` },
	];
	const view = choices.find((choice) => choice.value === wanted)?.value ?? choices[0]?.value ?? "used";
	return (
		<>
			<PageHead
				title={
					<>
						{nameOf(cohort)} {cohort.is_static && <Badge>Static</Badge>} {cohort.deleted && <Badge tone="bad">Deleted</Badge>}
					</>
				}
				about={cohort.description}
			>
				<Actions cohort={cohort} of={of} onDialog={setDialog} />
			</PageHead>
			<dl class="figures cohorts-figures">
				<div>
					<dt>People</dt>
					<dd>{cohort.count === null ? "–" : number(cohort.count)}</dd>
				</div>
				<div>
					<dt>Calculated</dt>
					<dd>
						<State cohort={cohort} />
					</dd>
				</div>
				<div>
					<dt>Created</dt>
					<dd>
						<When time={cohort.created_at} relative />
					</dd>
				</div>
			</dl>
			{cohort.errors_calculating > 0 && cohort.last_error_message && (
				<p class="notice" role="status">
					The last calculation failed: {cohort.last_error_message} The members are those of before.
				</p>
			)}
			<Tabs label="Parts of the cohort" value={view} choices={choices} onValue={setWanted}>
				<Card>
					{view === "members" && <Members cohort={cohort} onChanged={of.reload} />}
					{view === "criteria" &&
						(cohort.is_static ? (
							<Snippet text={stringify(cohort.query, 2)} label="The query that filled the cohort" />
						) : (
							<CriteriaForm of={criteria} />
						))}
					{view === "used" && <References references={cohort.used_by ?? []} />}
				</Card>
			</Tabs>
			{dialog === "rename" && <Rename cohort={cohort} onSaved={of.set} onClose={() => setDialog(null)} />}
			{dialog === "delete" && <Delete cohort={cohort} onClose={() => setDialog(null)} />}
			{criteria.changed && criteria.writable && <AskBeforeLeaving what="The changed criteria of this cohort are not saved." />}
		</>
	);
}

function Actions({ cohort, of, onDialog }: { cohort: Cohort; of: Resource<Cohort>; onDialog: (dialog: "rename" | "delete") => void }) {
	if (!can("cohort:write")) return null;
	if (cohort.deleted) {
		return (
			<Button onClick={() => attempt(async () => of.set(await patch<Cohort>(`cohorts/${cohort.id}/`, { deleted: false })), "Restored")}>
				Restore
			</Button>
		);
	}
	const duplicate = () =>
		attempt(async () => {
			const copy = await get<Cohort>(`cohorts/${cohort.id}/duplicate_as_static_cohort/`);
			navigate(pageAddress("cohorts", copy.id));
		}, "Duplicated");
	return (
		<Menu
			label="More"
			items={[
				{ label: "Rename", onSelect: () => onDialog("rename") },
				...(cohort.is_static ? [] : [{ label: "Duplicate as static", onSelect: duplicate }]),
				{ label: "Delete", danger: true, onSelect: () => onDialog("delete") },
			]}
		/>
	);
}

/** The criteria of a cohort as they are edited. */
interface Criteria {
	group: Group;
	set: (group: Group) => void;
	changed: boolean;
	writable: boolean;
	busy: boolean;
	/** Why they were not saved. */
	wrong: string;
	save: () => Promise<void>;
}

function useCriteria(cohort: Cohort, onSaved: (cohort: Cohort) => void): Criteria {
	const [group, setGroup] = useState<Group>(() => criteriaOf(cohort.filters));
	const [saved, setSaved] = useState(group);
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState("");
	const writable = can("cohort:write") && !cohort.deleted;
	const save = async () => {
		setBusy(true);
		setWrong("");
		try {
			const properties = tidied(group);
			if (!properties) throw new Error("Add a criterion.");
			onSaved(await patch<Cohort>(`cohorts/${cohort.id}/`, { filters: { properties } }));
			setSaved(group);
			toast("Saved");
		} catch (error) {
			setWrong(messageOf(error));
		}
		setBusy(false);
	};
	return { group, set: setGroup, changed: stringify(group) !== stringify(saved), writable, busy, wrong, save };
}

function CriteriaForm({ of: { group, set, changed, writable, busy, wrong, save } }: { of: Criteria }) {
	return (
		<div class="form">
			<CriteriaEditor group={group} onGroup={set} disabled={!writable} />
			{wrong && (
				<p class="mistake" role="alert">
					{wrong}
				</p>
			)}
			{writable && (
				<div class="actions">
					<Button look="primary" busy={busy} disabled={!changed} onClick={save}>
						Save criteria
					</Button>
				</div>
			)}
		</div>
	);
}

function Rename({ cohort, onSaved, onClose }: { cohort: Cohort; onSaved: (cohort: Cohort) => void; onClose: () => void }) {
	const [name, setName] = useState(cohort.name ?? "");
	const [description, setDescription] = useState(cohort.description);
	const body = { name: name.trim(), description };
	const [began] = useState(body);
	return (
		<FormDialog
			title="Rename the cohort"
			action="Save"
			onClose={onClose}
			onSubmit={async () => onSaved(await patch<Cohort>(`cohorts/${cohort.id}/`, changedFields(body, began)))}
		>
			<Field label="Name">{(id) => <TextInput id={id} value={name} onValue={setName} required maxLength={400} />}</Field>
			<Field label="Description">{(id) => <TextArea id={id} value={description} onValue={setDescription} maxLength={1000} />}</Field>
		</FormDialog>
	);
}

function Delete({ cohort, onClose }: { cohort: Cohort; onClose: () => void }) {
	return (
		<FormDialog
			title={`Delete ${nameOf(cohort)}?`}
			action="Delete"
			danger
			onClose={onClose}
			onSubmit={async () => {
				await patch(`cohorts/${cohort.id}/`, { deleted: true });
				toast("Deleted");
				navigate(pageAddress("cohorts"), { sure: true });
			}}
		>
			<p>A cohort that something uses cannot be deleted.</p>
		</FormDialog>
	);
}
