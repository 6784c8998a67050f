import { useState } from "preact/hooks";
import { post, send } from "../../api/client";
import { nameOf, type Person } from "../../data/people";
import { navigate, pageAddress } from "../../router";
import { Checkbox } from "../../ui/basics";
import { toast } from "../../ui/dialog";
import { FormDialog } from "../../ui/form-dialog";

/** What is deleted: the person, or their events alone. */
export type Deleting = "person" | "events";

/** Asks before a person or their events are deleted, does it, and goes to the list that says when it is done. */
export function DeleteDialog({ person, what, onClose }: { person: Person; what: Deleting; onClose: () => void }) {
	const [events, setEvents] = useState(false);
	const submit = async () => {
		if (what === "events") await post(`persons/${person.uuid}/delete_events/`);
		else await send("DELETE", `persons/${person.uuid}/`, { search: { delete_events: events || null } });
		toast(what === "events" ? "The events are deleted" : "The person is deleted");
		navigate(pageAddress("persons", "deletions"));
	};
	return (
		<FormDialog
			title={what === "events" ? `Delete the events of ${nameOf(person)}?` : `Delete ${nameOf(person)}?`}
			action={what === "events" ? "Delete events" : "Delete person"}
			danger
			onSubmit={submit}
			onClose={onClose}
		>
			{what === "person" ? (
				<>
					<p>From now on no answer shows the person. Their properties and distinct IDs are erased from the disk soon after an hour.</p>
					<Checkbox label="Delete their events too" checked={events} onValue={setEvents} />
					<p class="hint">
						{events
							? "Numbers that counted these events change."
							: "Their events stay, and still count. New events with one of the distinct IDs make a new person."}
					</p>
				</>
			) : (
				<p>
					From now on no answer shows the events, and numbers that counted them change. They are erased from the disk soon after an hour.
					The person stays.
				</p>
			)}
			<p>This cannot be undone.</p>
		</FormDialog>
	);
}
