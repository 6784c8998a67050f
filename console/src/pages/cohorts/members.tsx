import { useState } from "preact/hooks";
import { get, type Page, patch, send } from "../../api/client";
import { useResource, useSettled } from "../../api/use";
import { useOffset } from "../../data/paged";
import { nameOf, type Person } from "../../data/people";
import { PeopleTable } from "../../data/person";
import { can } from "../../session";
import { Button, Empty, Field, Loaded, Select, TextInput } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";
import { Pager } from "../../ui/table";
import { csvOf } from "./criteria";
import type { Cohort } from "./record";

const limit = 50;

/** The members of a cohort. Those of a static one can be added and removed. */
export function Members({ cohort, onChanged }: { cohort: Cohort; onChanged: () => void }) {
	const [typed, setTyped] = useState("");
	const search = useSettled(typed.trim());
	const [adding, setAdding] = useState(false);
	const [offset, setOffset] = useOffset(search);
	const found = useResource(
		(signal) => get<Omit<Page<Person>, "count">>(`cohorts/${cohort.id}/persons/`, { search, limit, offset }, signal),
		[cohort.id, cohort.last_calculation, cohort.count, search, offset],
	);
	const editable = cohort.is_static && !cohort.deleted && can("cohort:write");
	const remove = (person: Person) =>
		attempt(
			async () => {
				await patch(`cohorts/${cohort.id}/remove_person_from_static_cohort/`, { person_id: person.uuid });
				found.reload();
				onChanged();
			},
			`${nameOf(person)} was removed`,
		);
	return (
		<>
			<div class="data-bar">
				<Field label="Search members" hideLabel>
					{(id) => (
						<TextInput id={id} type="search" placeholder="Email, name or distinct ID" value={typed} onValue={setTyped} maxLength={200} />
					)}
				</Field>
				{editable && <Button onClick={() => setAdding(true)}>Add people</Button>}
			</div>
			<Loaded of={found} rows={6}>
				{({ results, next }) =>
					results.length === 0 && offset === 0 ? (
						<Empty title={search ? "No matching members" : cohort.is_calculating ? "The members are being computed" : "No members"} />
					) : (
						<>
							<PeopleTable
								people={results}
								label="Members"
								more={
									editable
										? [
												{
													name: "remove",
													title: <span class="visually-hidden">Remove</span>,
													cell: (person) => (
														<Button small look="quiet" aria-label={`Remove ${nameOf(person)}`} onClick={() => remove(person)}>
															Remove
														</Button>
													),
												},
											]
										: []
								}
							/>
							<Pager offset={offset} limit={limit} shown={results.length} more={next !== null} onOffset={setOffset} />
						</>
					)
				}
			</Loaded>
			{adding && (
				<AddPeople
					cohort={cohort}
					onClose={() => setAdding(false)}
					onAdded={() => {
						found.reload();
						onChanged();
					}}
				/>
			)}
		</>
	);
}

type By = "distinct_id" | "email" | "person_id";

const names: { value: By; label: string }[] = [
	{ value: "distinct_id", label: "Distinct IDs" },
	{ value: "email", label: "Email addresses" },
	{ value: "person_id", label: "UUIDs of people" },
];

/** People to put into a static cohort: a list, or a file. */
export interface People {
	by: By;
	list: string;
	file: File | null;
}

export const nobody: People = { by: "distinct_id", list: "", file: null };

/** The people as a file; null for nobody. */
export function fileOf({ by, list, file }: People): Blob | null {
	if (file) return file;
	return list.trim() ? new Blob([csvOf(by, list)], { type: "text/csv" }) : null;
}

/** The fields that name people. */
export function PeopleFields({ people, onPeople }: { people: People; onPeople: (people: People) => void }) {
	return (
		<>
			<Field label="CSV file" hint="One column of distinct IDs, or a column named person_id, distinct_id or email.">
				{(id) => (
					<input
						id={id}
						type="file"
						accept=".csv,text/csv,text/plain"
						onChange={(event) => onPeople({ ...people, file: event.currentTarget.files?.[0] ?? null })}
					/>
				)}
			</Field>
			{!people.file && (
				<>
					<Field label="Or a list of">
						{(id) => <Select id={id} value={people.by} choices={names} onValue={(by) => onPeople({ ...people, by })} />}
					</Field>
					<Field label="List" hint="One in each line. Those who are not known are left out.">
						{(id) => (
							<textarea
								id={id}
								rows={6}
								value={people.list}
								onInput={(event) => onPeople({ ...people, list: event.currentTarget.value })}
							/>
						)}
					</Field>
				</>
			)}
		</>
	);
}

function AddPeople({ cohort, onClose, onAdded }: { cohort: Cohort; onClose: () => void; onAdded: () => void }) {
	const [people, setPeople] = useState(nobody);
	return (
		<FormDialog
			title="Add people"
			action="Add"
			onClose={onClose}
			onSubmit={async () => {
				const file = fileOf(people);
				if (!file) throw new Error("Choose a file, or write a list.");
				const form = new FormData();
				form.set("csv", file, "people.csv");
				await send("PATCH", `cohorts/${cohort.id}/`, { body: form });
				onAdded();
			}}
		>
			<PeopleFields people={people} onPeople={setPeople} />
		</FormDialog>
	);
}
