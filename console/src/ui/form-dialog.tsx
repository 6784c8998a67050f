import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "../api/client";
import { Button } from "./basics";
import { Dialog, toast } from "./dialog";
import { AskBeforeLeaving } from "./leaving";

/**
 * A dialog with a form: it is sent by Enter or the button, and stays open with what is wrong when the server refuses it. Once something
 * was written into it, a click beside it does not close it, and Escape only after it has asked. So does what leaves the page.
 */
export function FormDialog({
	title,
	action,
	children,
	onSubmit,
	onClose,
	danger,
	wide,
}: {
	title: string;
	/** What the button says, such as "Save". */
	action: string;
	children?: ComponentChildren;
	/** Does it. The dialog closes unless it throws. */
	onSubmit: () => Promise<void>;
	onClose: () => void;
	danger?: boolean;
	wide?: boolean;
}) {
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState("");
	const [touched, setTouched] = useState(false);
	const [asking, setAsking] = useState(false);
	const shut = useRef(false);
	/** Whether the page may be left without a question, as by a form that is saved and opens what it made. */
	const free = useRef(false);
	const close = () => {
		free.current = true;
		onClose();
	};
	useEffect(() => () => void (shut.current = true), []);
	const submit = async (event: Event) => {
		event.preventDefault();
		setBusy(true);
		setWrong("");
		free.current = true;
		try {
			await onSubmit();
			if (!shut.current) onClose();
		} catch (error) {
			free.current = false;
			if (shut.current) toast(messageOf(error), { bad: true });
			setWrong(messageOf(error));
			setBusy(false);
		}
	};
	return (
		<>
			<Dialog title={title} onClose={close} wide={wide} firm={touched ? () => setAsking(true) : undefined}>
				<form onSubmit={submit} onInput={() => setTouched(true)} class="form">
					{children}
					{wrong && (
						<p class="mistake" role="alert">
							{wrong}
						</p>
					)}
					<footer class="dialog-foot">
						<Button onClick={close}>Cancel</Button>
						<Button type="submit" look={danger ? "danger" : "primary"} busy={busy}>
							{action}
						</Button>
					</footer>
				</form>
			</Dialog>
			{touched && <AskBeforeLeaving what={`What you wrote into “${title}” is not saved.`} tab over free={() => free.current} />}
			{asking && (
				<Dialog title="Discard changes?" onClose={() => setAsking(false)}>
					<div class="form">
						<p>The form will close and your changes will be lost.</p>
						<footer class="dialog-foot">
							<Button onClick={() => setAsking(false)}>Keep writing</Button>
							<Button look="danger" onClick={close}>
								Discard
							</Button>
						</footer>
					</div>
				</Dialog>
			)}
		</>
	);
}
