/** Puts a text on the clipboard. It throws when the browser does not allow that. */
export async function copyText(text: string): Promise<void> {
	// Pages without TLS have no clipboard, other than those of localhost.
	if (navigator.clipboard) return navigator.clipboard.writeText(text);
	if (!copySelected(text)) throw new Error("Copying needs HTTPS. Select the text instead.");
}

/** Copies by way of a field that nobody sees. Reports whether the browser did it. */
function copySelected(text: string): boolean {
	const focused = document.activeElement instanceof HTMLElement ? document.activeElement : null;
	const field = document.createElement("textarea");
	field.value = text;
	field.readOnly = true;
	field.style.position = "fixed";
	field.style.opacity = "0";
	// Nothing outside an open dialog can be selected.
	(focused?.closest("dialog") ?? document.body).append(field);
	field.select();
	try {
		return document.execCommand("copy");
	} finally {
		field.remove();
		focused?.focus();
	}
}
