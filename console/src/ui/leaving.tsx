import { useEffect, useState } from "preact/hooks";
import { leaving } from "../router";
import { Button } from "./basics";
import { Dialog } from "./dialog";

/** Asks before the page is left, as long as it is there. `what` says what would be lost. */
export function AskBeforeLeaving({ what }: { what: string }) {
	const [go, setGo] = useState<(() => void) | null>(null);
	useEffect(() => {
		const guard = (leave: () => void) => setGo(() => leave);
		const unload = (event: BeforeUnloadEvent) => event.preventDefault();
		leaving.value = guard;
		window.addEventListener("beforeunload", unload);
		return () => {
			if (leaving.value === guard) leaving.value = null;
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
