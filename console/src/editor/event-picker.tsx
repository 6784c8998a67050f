import { Combobox } from "../ui/combobox";
import { useName } from "./name";
import { actionName, type Entity, entities, suggested } from "./suggest";

export type { Entity } from "./suggest";

interface EventPickerProps {
	/** What the field is called, for screen readers. */
	label: string;
	/** What is chosen; null for nothing yet. */
	value: Entity | null;
	onValue: (entity: Entity) => void;
	/** Whether actions are offered. Default: yes. */
	actions?: boolean;
	/** Whether "All events" is offered. Default: yes. */
	everything?: boolean;
	placeholder?: string;
	id?: string;
	disabled?: boolean;
}

/** A field that chooses an event, an action or all events, with suggestions from the project's data. */
export function EventPicker({ label, value, onValue, actions = true, everything = true, ...rest }: EventPickerProps) {
	const name = useEntityName(value);
	return (
		<Combobox
			{...rest}
			placeholder={rest.placeholder ?? (actions ? "Choose an event or action" : "Choose an event")}
			label={label}
			value={name}
			suggest={(text, signal) => entities(text, { actions, everything }, signal)}
			onValue={(_, s) => {
				const chosen = suggested<Entity>(s);
				if (chosen) onValue(chosen);
			}}
		/>
	);
}

/** What an event or action is called. The present name of an action is asked for. */
export function useEntityName(of: Entity | null): string {
	const action = of && "action" in of ? of : null;
	const name = useName(action ? String(action.action) : "", (signal) => actionName(action?.action ?? 0, signal));
	if (!of) return "";
	if ("event" in of) return of.event ?? "All events";
	return name || of.name || `Action ${of.action}`;
}
