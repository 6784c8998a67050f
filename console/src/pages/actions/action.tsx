import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { get, messageOf, patch, post } from "../../api/client";
import { stringify } from "../../api/json";
import { useResource } from "../../api/use";
import { readTags } from "../../data/tags";
import { afterSave, changedFields } from "../../data/draft";
import { countEvents, type Wanted } from "../../data/events";
import { filled } from "../../data/filters";
import { EventList } from "../../data/list";
import { ReferencesOf } from "../../data/references";
import { useSettledJSON } from "../../data/use";
import { LoadedPage } from "../../data/page";
import { navigate, pageAddress, place } from "../../router";
import { can } from "../../session";
import { Badge, Button, Card, Failure, Field, PageHead, Select, TextArea, TextInput } from "../../ui/basics";
import { attempt, toast } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { counted } from "../../ui/format";
import { AskBeforeLeaving } from "../../ui/leaving";
import { StepEditor } from "./step";
import { type Action, blankStep, filtersOf, type Step } from "./steps";

/** One action, or a new one. */
export default function ActionPage({ id }: { id: string }) {
	const found = useResource(
		async (signal) => (id === "new" ? null : await get<Action>(`actions/${encodeURIComponent(id)}/`, {}, signal)),
		[id],
	);
	return (
		<LoadedPage of={found} title="Action">
			{(action) => <ActionEditor key={action?.id ?? "new"} action={action} />}
		</LoadedPage>
	);
}

/** What can be changed of an action. */
interface Draft {
	name: string;
	description: string;
	tags: string;
	steps: Step[];
}

const draftOf = (action: Action | null): Draft => ({
	name: action?.name ?? "",
	description: action?.description ?? "",
	tags: action?.tags.join(", ") ?? "",
	steps: action?.steps ?? [blankStep],
});

/** The steps without filters that say nothing. */
function tidied(steps: readonly Step[]): Step[] {
	return steps.map((step) => {
		const properties = filled(step.properties ?? []);
		return { ...step, properties: properties.length ? properties : null };
	});
}

/** What of a draft is sent. */
const bodyOf = (draft: Draft) => ({
	name: draft.name.trim(),
	description: draft.description,
	tags: readTags(draft.tags),
	steps: tidied(draft.steps),
});

function ActionEditor({ action: loaded }: { action: Action | null }) {
	const [action, setAction] = useState(loaded);
	const [draft, setDraft] = useState(() => draftOf(loaded));
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState("");
	const [deleting, setDeleting] = useState(false);
	const writable = can("action:write") && !action?.deleted;
	const fixed = !writable || (busy && !action); // an action that is being made has its own page in a moment
	const changed = stringify(draft) !== stringify(draftOf(action));
	const set = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes });
	const save = async (event: Event) => {
		event.preventDefault();
		setBusy(true);
		setWrong("");
		const { path } = place.value;
		const sent = draft;
		const body = bodyOf(draft);
		try {
			const saved = action
				? await patch<Action>(`actions/${action.id}/`, changedFields(body, bodyOf(draftOf(action))))
				: await post<Action>("actions/", body);
			toast("Saved");
			if (!action && place.value.path === path)
				navigate(pageAddress("data-management", "actions", saved.id), { replace: true, sure: true });
			setAction(saved);
			setDraft((now) => afterSave(now, sent, draftOf(saved)));
		} catch (error) {
			setWrong(messageOf(error));
		}
		setBusy(false);
	};
	return (
		<>
			<PageHead
				title={
					<>
						{action ? action.name || `Action ${action.id}` : "New action"} {action?.deleted && <Badge tone="bad">Deleted</Badge>}
					</>
				}
			>
				{action && writable && (
					<Button look="danger" onClick={() => setDeleting(true)}>
						Delete
					</Button>
				)}
				{action?.deleted && can("action:write") && (
					<Button
						onClick={() => attempt(async () => setAction(await patch<Action>(`actions/${action.id}/`, { deleted: false })), "Restored")}
					>
						Restore
					</Button>
				)}
				{writable && (
					<Button type="submit" form="action" look="primary" busy={busy} disabled={!changed}>
						Save
					</Button>
				)}
			</PageHead>
			<div class="split actions-split">
				<form id="action" class="form card" onSubmit={save}>
					{wrong && (
						<p class="mistake" role="alert">
							{wrong}
						</p>
					)}
					<Field label="Name">
						{(id) => <TextInput id={id} value={draft.name} onValue={(name) => set({ name })} required maxLength={400} disabled={fixed} />}
					</Field>
					<Field label="Description">
						{(id) => <TextArea id={id} value={draft.description} onValue={(description) => set({ description })} disabled={fixed} />}
					</Field>
					<Field label="Tags" hint="Separated by commas.">
						{(id) => <TextInput id={id} value={draft.tags} onValue={(tags) => set({ tags })} disabled={fixed} />}
					</Field>
					{draft.steps.length === 0 && <p class="hint">An action without steps matches every event.</p>}
					{draft.steps.map((step, i) => (
						<StepEditor
							key={i}
							step={step}
							number={i + 1}
							disabled={fixed}
							onStep={(next) => set({ steps: draft.steps.map((old, at) => (at === i ? next : old)) })}
							onRemove={!fixed && draft.steps.length > 1 ? () => set({ steps: draft.steps.filter((_, at) => at !== i) }) : undefined}
						/>
					))}
					{!fixed && (
						<div>
							<Button icon={<Plus size={14} aria-hidden="true" />} onClick={() => set({ steps: [...draft.steps, blankStep] })}>
								Add a step
							</Button>
						</div>
					)}
				</form>
				<div class="stack">
					{can("query:read") && <Preview steps={draft.steps} />}
					{action && (
						<Card title="Used by">
							<ReferencesOf path={`actions/${action.id}/references/`} />
						</Card>
					)}
				</div>
			</div>
			{deleting && action && (
				<FormDialog
					title={`Delete ${action.name || `Action ${action.id}`}?`}
					action="Delete"
					danger
					onClose={() => setDeleting(false)}
					onSubmit={async () => {
						await patch(`actions/${action.id}/`, { deleted: true });
						toast("Deleted");
						navigate(pageAddress("data-management", "actions"), { sure: true });
					}}
				>
					<p>Queries that use it fail until it is restored. It is kept for 30 days.</p>
				</FormDialog>
			)}
			{changed && writable && <AskBeforeLeaving what="The changes of this action are not saved." />}
		</>
	);
}

const ranges = [
	{ value: "-7d", label: "Last 7 days" },
	{ value: "-30d", label: "Last 30 days" },
	{ value: "-365d", label: "Last 365 days" },
	{ value: "all", label: "All time" },
] as const;

/** The events that match the steps as they are in the form. */
function Preview({ steps }: { steps: readonly Step[] }) {
	const [after, setAfter] = useState<(typeof ranges)[number]["value"]>("-7d");
	const wanted = useSettledJSON<Wanted>({ groups: filtersOf(tidied(steps)), after }, 500);
	const count = useResource((signal) => countEvents(wanted, { signal }), [wanted]);
	return (
		<Card title="Events that match" actions={<Select aria-label="Time of the events" value={after} choices={ranges} onValue={setAfter} />}>
			<div class="stack">
				{count.error !== undefined ? (
					<Failure error={count.error} />
				) : (
					<>
						<p aria-live="polite" class="actions-count" data-count={count.loading ? undefined : count.data}>
							{count.data === undefined ? "Counting…" : counted(count.data, "event")}
						</p>
						<EventList wanted={wanted} limit={10} label="Events that match" empty="No event matches" />
					</>
				)}
			</div>
		</Card>
	);
}
