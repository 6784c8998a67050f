import type { Behind } from "../charts/chart";
import { Dialog } from "../ui/dialog";

/** Shows who or what is behind a number. */
export function BehindDialog({ behind, onClose }: { behind: Behind; onClose: () => void }) {
	return (
		<Dialog title={behind.title} onClose={onClose} side>
			{null}
		</Dialog>
	);
}
