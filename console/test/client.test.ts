import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError, get, patch, pending, post, send } from "../src/api/client";

const answers = (answer: () => Promise<Response>) => vi.stubGlobal("fetch", vi.fn(answer));

/** What sending a request throws, as its code and its text. */
async function thrown(): Promise<[string, string]> {
	const error = await send("GET", "insights/").catch((e: unknown) => e);
	if (!(error instanceof ApiError)) throw error;
	return [error.code, error.detail];
}

beforeEach(() => vi.stubGlobal("sessionStorage", { getItem: () => null }));
afterEach(() => {
	vi.unstubAllGlobals();
	expect(pending.value).toBe(0);
});

test("a server that does not answer is told from an answer that is not JSON", async () => {
	answers(() => Promise.reject(new TypeError("Failed to fetch")));
	expect(await thrown()).toEqual(["unreachable", "The server cannot be reached. Check that it runs, and try again."]);
	answers(async () => new Response("<html>Sign in to the network</html>"));
	expect(await thrown()).toEqual(["not_json", "The answer is not JSON. It may come from a proxy between this page and the server."]);
	answers(async () => new Response('{"code": "bad", "detail": "No."}', { status: 400 }));
	expect(await thrown()).toEqual(["bad", "No."]);
});

test("large numbers keep their digits in records, where that is asked for, and where they are sent", async () => {
	answers(async () => new Response("[9007199254740993]"));
	expect((await send("GET", "x/")).data).toEqual([9007199254740992]);
	expect((await send("POST", "x/", { exact: true, body: { value: 9007199254740993n } })).data).toEqual([9007199254740993n]);
	expect(vi.mocked(fetch).mock.lastCall?.[1]?.body).toBe('{"value":9007199254740993}');
	expect([await get("x/"), await post("x/"), await patch("x/", {})]).toEqual(Array(3).fill([9007199254740993n]));
	answers(async () => new Response(null, { status: 204 }));
	expect((await send("DELETE", "x/")).data).toBe(undefined);
});
