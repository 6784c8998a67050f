import { type ContainerNode, h, render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Resource } from "../src/api/use";

let use: typeof import("../src/api/use");

beforeEach(async () => {
	vi.stubGlobal("document", {});
	vi.stubGlobal("sessionStorage", { getItem: () => null });
	use = await import("../src/api/use");
});

afterEach(() => vi.unstubAllGlobals());

test("a load that began before something was set does not replace it", async () => {
	const loads: { signal: AbortSignal; answer: (data: string) => void }[] = [];
	let shown: Resource<string> | undefined;
	function Page() {
		shown = use.useResource((signal) => new Promise<string>((answer) => loads.push({ signal, answer })), []);
		return null;
	}
	render(h(Page, {}), { nodeType: 1, childNodes: [], firstChild: null } as unknown as ContainerNode);
	await vi.waitFor(() => expect(loads).toHaveLength(1));
	loads[0]?.answer("first");
	await vi.waitFor(() => expect(shown).toMatchObject({ data: "first", loading: false }));

	shown?.reload();
	await vi.waitFor(() => expect(loads).toHaveLength(2));
	shown?.set("changed");
	loads[1]?.answer("before the change");
	await vi.waitFor(() => expect(shown).toMatchObject({ data: "changed", loading: false }));
	await new Promise((resolve) => setTimeout(resolve, 20));
	expect(shown?.data).toBe("changed");
	expect(loads[1]?.signal.aborted).toBe(true);

	shown?.reload();
	await vi.waitFor(() => expect(loads).toHaveLength(3));
	loads[2]?.answer("after the change");
	await vi.waitFor(() => expect(shown?.data).toBe("after the change"));
});
