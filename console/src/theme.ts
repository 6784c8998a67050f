import { computed, effect, signal } from "@preact/signals";

export type Theme = "light" | "dark" | "system";

const storedAt = "analytics.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(system.matches);
system.addEventListener("change", (event) => {
	systemIsDark.value = event.matches;
});

/** What the user chose. */
export const theme = signal<Theme>(readTheme());

/** Whether the page is dark now. Charts are drawn again when it changes. */
export const dark = computed(() => theme.value === "dark" || (theme.value === "system" && systemIsDark.value));

effect(() => {
	document.documentElement.dataset.theme = dark.value ? "dark" : "light";
});

/** Uses a theme from now on, in later visits too. */
export function setTheme(next: Theme): void {
	theme.value = next;
	try {
		localStorage.setItem(storedAt, next);
	} catch {
		// The browser keeps nothing: the theme is that of this visit.
	}
}

function readTheme(): Theme {
	try {
		const kept = localStorage.getItem(storedAt);
		return kept === "light" || kept === "dark" ? kept : "system";
	} catch {
		return "system";
	}
}

/** The colours of tokens.css as they are now, for what draws on a canvas. */
export function colour(name: string): string {
	return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
