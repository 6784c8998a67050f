import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

let signin: typeof import("../src/signin");
let session: typeof import("../src/session");

/** What the tab keeps, and its address. */
let kept: Record<string, string> = {};
let address = "";

/** What the server answers to each request in turn: a status, or a status with a body. */
function answers(...list: [status: number, body?: unknown][]): void {
	vi.stubGlobal(
		"fetch",
		vi.fn(async () => {
			const [status, body = { detail: "Refused." }] = list.shift() ?? [500];
			if (status === 0) throw new TypeError("Failed to fetch");
			return new Response(status === 204 ? null : JSON.stringify(body), { status });
		}),
	);
}

const exchange: [number, unknown] = [201, { key: "phx_link", expires_at: "2026-03-02T00:00:00Z" }];
const self: [number, unknown] = [200, { label: "console", scopes: ["*"], scoped_organizations: ["shop"] }];
const project: [number, unknown] = [200, { id: 1, name: "Shop" }];

beforeEach(async () => {
	vi.resetModules();
	kept = {};
	vi.stubGlobal("sessionStorage", {
		getItem: (name: string) => kept[name] ?? null,
		setItem: (name: string, value: string) => void (kept[name] = value),
		removeItem: (name: string) => void delete kept[name],
	});
	vi.stubGlobal("window", {
		location: {
			pathname: "/",
			search: "",
			get hash() {
				return new URL(address, "http://localhost").hash;
			},
		},
		history: { state: null, replaceState: (_: unknown, __: string, to: string) => void (address = to) },
		addEventListener: () => {},
	});
	session = await import("../src/session");
	signin = await import("../src/signin");
});

afterEach(() => vi.unstubAllGlobals());

const keyInTab = () => session.stored()?.key;

test.each([
	["the server cannot be reached", 0, true],
	["the server fails", 500, true],
	["a proxy does not reach the server", 502, true],
	["the server is asked too often", 429, true],
	["the key no longer works", 401, false],
])("a reload while %s", async (_, status, again) => {
	session.keep({ key: "phx_a", own: true });
	answers([status]);
	const error = await signin.resume().catch((e: unknown) => e);
	expect(signin.canPass(error)).toBe(again);
	expect(keyInTab()).toBe(again ? "phx_a" : undefined);
	if (!again) return;
	answers(self, project);
	await signin.resume();
	expect(session.session.value?.key).toBe("phx_a");
});

test("a link stays in the address until the server has answered", async () => {
	address = "/#code=abc";
	answers([503]);
	expect(signin.canPass(await signin.resume().catch((e: unknown) => e))).toBe(true);
	expect(signin.codeInAddress()).toBe("abc");
	answers([401]);
	expect(signin.canPass(await signin.resume().catch((e: unknown) => e))).toBe(false);
	expect(signin.codeInAddress()).toBe(null);
});

test("the key of a link is kept when the server fails after the exchange", async () => {
	address = "/#code=abc";
	answers(exchange, [503]);
	expect(signin.canPass(await signin.resume().catch((e: unknown) => e))).toBe(true);
	expect([keyInTab(), signin.codeInAddress()]).toEqual(["phx_link", null]);
	answers(self, project);
	await signin.resume();
	expect(session.session.value).toMatchObject({ key: "phx_link", own: true, expiresAt: "2026-03-02T00:00:00Z" });
});

test.each([
	["of the project", "shop", project, 1],
	["of the project, without project:read", "shop", [403], 0],
	["of another project", "bakery", project, null],
	["of another project, without project:read", "bakery", [403], null],
] as const)("a page with something unsaved takes only keys of its project: one %s", async (_, organization, second, id) => {
	answers([200, { label: "again", scopes: [], scoped_organizations: [organization] }], [...second]);
	const failed = await signin.signInWith("phx_b", { only: "shop" }).catch((e: unknown) => (e as Error).message);
	expect(failed).toBe(id === null ? "This key belongs to another project." : undefined);
	expect(session.session.value?.project.id).toBe(id === null ? undefined : id);
});

describe("signing out", () => {
	const signedIn = (own: boolean) =>
		session.open({ key: "phx_a", label: "", scopes: ["*"], own, organization: "shop", project: { id: 1, name: "Shop" } });

	test("goes on with the session while its key cannot be revoked, and can be tried again", async () => {
		signedIn(true);
		answers([503, { detail: "Not now." }], [0], [204, null]);
		await signin.signOut();
		expect([keyInTab(), signin.notRevoked.value]).toEqual(["phx_a", "Not now."]);
		await signin.signOut();
		expect([keyInTab(), signin.notRevoked.value]).toEqual(["phx_a", "The server cannot be reached. Check that it runs, and try again."]);
		await signin.signOut();
		expect([session.session.value, keyInTab(), signin.notRevoked.value]).toEqual([null, undefined, ""]);
	});
	test("ends a session whose key is gone", async () => {
		signedIn(true);
		answers([401]);
		await signin.signOut();
		expect([session.session.value, signin.notRevoked.value]).toEqual([null, ""]);
	});
	test("forgets a key that no link made", async () => {
		signedIn(false);
		answers();
		await signin.signOut();
		expect(session.session.value).toBeNull();
		expect(fetch).not.toHaveBeenCalled();
	});
});
