import { useEffect, useState } from "preact/hooks";
import { type Guard, guards } from "../router";
import { unsaved } from "../session";
import { Button } from "./basics";
import { Dialog } from "./dialog";

/** Asks before the page is left, as long as it is there. */
export function AskBeforeLeaving({
	what,
	tab = false,
	over,
	free,
}: {
	/** What would be lost. */
	what: string;
	/** Whether another tab of the page loses it, too. */
	tab?: boolean;
	/** Whether it lies over the page, which may lose something else. */
	over?: boolean;
	/** Reports whether the page may be left without a question. */
	free?: () => boolean;
}) {
	const [go, setGo] = useState<(() => void) | null>(null);
	useEffect(() => {
		const guard: Guard = { ask: (leave) => (free?.() ? leave() : setGo(() => leave)), tab, over };
		const unload = (event: BeforeUnloadEvent) => event.preventDefault();
		guards.value = [...guards.value, guard];
		unsaved.value++;
		window.addEventListener("beforeunload", unload);
		return () => {
			guards.value = guards.value.filter((other) => other !== guard);
			unsaved.value--;
			window.removeEventListener("beforeunload", unload);
		};
	}, []);
	if (!go) return null;
	const leave = () => {
		setGo(null);
		go();
	};
	return (
		<Dialog title="Leave this page?" onClose={() => setGo(null)}>
			<div class="form">
				<p>{what}</p>
				<footer class="dialog-foot">
					<Button onClick={() => setGo(null)}>Stay</Button>
					<Button look="danger" onClick={leave}>
						Leave
					</Button>
				</footer>
			</div>
		</Dialog>
	);
}
