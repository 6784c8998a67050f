import { useState } from "preact/hooks";
import { messageOf, post, send } from "../../api/client";
import { same } from "../../insights/model";
import { navigate, pageAddress } from "../../router";
import { can } from "../../session";
import { Button, Card, Empty, Field, PageHead, Segments, TextArea, TextInput } from "../../ui/basics";
import { AskBeforeLeaving } from "../../ui/leaving";
import { type Group, newLeaf, tidied } from "./criteria";
import { CriteriaEditor } from "./editor";
import { fileOf, nobody, PeopleFields } from "./members";
import type { Cohort } from "./record";

/** The criteria that the form begins with. */
const blank: Group = { type: "AND", values: [newLeaf("performed_event")] };

/** The form of a new cohort. */
export function NewCohort() {
	const [kind, setKind] = useState<"dynamic" | "static">("dynamic");
	const [name, setName] = useState("");
	const [description, setDescription] = useState("");
	const [group, setGroup] = useState(blank);
	const [people, setPeople] = useState(nobody);
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState("");
	if (!can("cohort:write")) {
		return (
			<>
				<PageHead title="New cohort" />
				<Empty title="Your key may not create cohorts">It needs the scope cohort:write.</Empty>
			</>
		);
	}
	const changed =
		!same({ name, description, group, list: people.list }, { name: "", description: "", group: blank, list: "" }) || people.file !== null;
	const create = async (): Promise<Cohort> => {
		const about = { name: name.trim(), description };
		if (kind === "dynamic") {
			const properties = tidied(group);
			if (!properties) throw new Error("Add a criterion.");
			return await post<Cohort>("cohorts/", { ...about, filters: { properties } });
		}
		const file = fileOf(people);
		if (!file) return await post<Cohort>("cohorts/", { ...about, is_static: true });
		const form = new FormData();
		for (const [field, value] of Object.entries({ ...about, is_static: "true" })) form.set(field, value);
		form.set("csv", file, "people.csv");
		return (await send<Cohort>("POST", "cohorts/", { body: form })).data;
	};
	const submit = async (event: Event) => {
		event.preventDefault();
		setBusy(true);
		setWrong("");
		try {
			const made = await create();
			navigate(pageAddress("cohorts", made.id), { replace: true, sure: true });
		} catch (error) {
			setWrong(messageOf(error));
			setBusy(false);
		}
	};
	return (
		<form onSubmit={submit}>
			<PageHead title="New cohort">
				<Button type="submit" look="primary" busy={busy}>
					Create
				</Button>
			</PageHead>
			<Card>
				<div class="form">
					{wrong && (
						<p class="mistake" role="alert">
							{wrong}
						</p>
					)}
					<Field label="Name">{(id) => <TextInput id={id} value={name} onValue={setName} required maxLength={400} />}</Field>
					<Field label="Description">{(id) => <TextArea id={id} value={description} onValue={setDescription} maxLength={1000} />}</Field>
					<div>
						<Segments
							label="Kind of cohort"
							value={kind}
							choices={[
								{ value: "dynamic", label: "Dynamic" },
								{ value: "static", label: "Static" },
							]}
							onValue={setKind}
						/>
						<p class="hint">
							{kind === "dynamic"
								? "Its members are computed from criteria, and kept up to date."
								: "Its members stay until you take them out."}
						</p>
					</div>
					{kind === "dynamic" ? <CriteriaEditor group={group} onGroup={setGroup} /> : <PeopleFields people={people} onPeople={setPeople} />}
				</div>
			</Card>
			{changed && <AskBeforeLeaving what="The new cohort is not saved." />}
		</form>
	);
}
