import { afterEach, beforeEach, expect, test, vi } from "vitest";

beforeEach(() => {
	const forbidden = () => {
		throw new DOMException("Access is denied for this document.", "SecurityError");
	};
	const storage = { getItem: forbidden, setItem: forbidden, removeItem: forbidden };
	vi.stubGlobal("localStorage", storage);
	vi.stubGlobal("sessionStorage", storage);
	vi.stubGlobal("window", { matchMedia: () => ({ matches: false, addEventListener: () => {} }) });
	vi.stubGlobal("document", { documentElement: { dataset: {} } });
});

afterEach(() => vi.unstubAllGlobals());

test("a browser that keeps nothing shows the console all the same", async () => {
	const { setTheme, theme } = await import("../src/theme");
	expect(theme.value).toBe("system");
	setTheme("dark");
	expect(theme.value).toBe("dark");
	expect(document.documentElement.dataset.theme).toBe("dark");
});

test("one signs in and out of a browser that keeps nothing", async () => {
	const { close, open, session, stored } = await import("../src/session");
	expect(stored()).toBeNull();
	open({ key: "phx_a", label: "a", scopes: ["*"], own: false, organization: "o", project: { id: 1, name: "Shop" } });
	expect(session.value?.key).toBe("phx_a");
	close();
	expect(session.value).toBeNull();
});
