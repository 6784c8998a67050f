import { EventPicker } from "../editor/event-picker";

/** A field for the name of an event; empty for every event. */
export function EventNameField({
	id,
	value,
	onValue,
	label = "Event",
	disabled,
}: {
	id?: string;
	value: string;
	onValue: (value: string) => void;
	label?: string;
	disabled?: boolean;
}) {
	return (
		<EventPicker
			id={id}
			label={label}
			value={{ event: value || null }}
			actions={false}
			disabled={disabled}
			onValue={(chosen) => onValue("event" in chosen ? (chosen.event ?? "") : "")}
		/>
	);
}
