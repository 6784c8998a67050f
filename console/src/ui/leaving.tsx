import { useEffect, useState } from "preact/hooks";
import { type Guard, guards } from "../router";
import { unsaved } from "../session";
import { Button } from "./basics";
import { Dialog } from "./dialog";

/** Asks before the page is left, as long as it is there. `what` says what would be lost, `tab` whether another tab of the page loses it, too. */
export function AskBeforeLeaving({ what, tab = false }: { what: string; tab?: boolean }) {
	const [go, setGo] = useState<(() => void) | null>(null);
	useEffect(() => {
		const guard: Guard = { ask: (leave) => setGo(() => leave), tab };
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
	return (
		<Dialog title="Leave this page?" onClose={() => setGo(null)}>
			<div class="form">
				<p>{what}</p>
				<footer class="dialog-foot">
					<Button onClick={() => setGo(null)}>Stay</Button>
					<Button look="danger" onClick={go}>
						Leave
					</Button>
				</footer>
			</div>
		</Dialog>
	);
}
