import { signal } from "@preact/signals";
import { end, session } from "../session";
import { parse, stringify } from "./json";

/** An error as the API describes it: docs/api.md, "Errors". */
export class ApiError extends Error {
	constructor(
		readonly status: number,
		readonly code: string,
		readonly detail: string,
		readonly attr: string | null = null,
		readonly extra: Record<string, unknown> = {},
		/** Seconds after which the request can be sent again, from Retry-After. */
		readonly retryAfter: number | null = null,
	) {
		super(detail);
	}
}

/** What the headers say of how an answer was made: docs/api.md, "Caching". */
export interface Provenance {
	status: number;
	cacheStatus: string;
	/** Seconds since the result was computed. */
	age: number | null;
	cacheControl: string;
	serverTiming: string;
	rateLimit: string;
	rateLimitPolicy: string;
	requestId: string;
	/** Milliseconds until the answer was read. */
	elapsed: number;
	/** Bytes of the body, before compression. */
	size: number;
}

export interface Answer<T> {
	data: T;
	headers: Provenance;
}

/** A page of a list of the API. */
export interface Page<T> {
	/** How many there are in all. */
	count: number;
	/** The address of the page after; null for the last. */
	next: string | null;
	results: T[];
}

export interface RequestOptions {
	/** What is sent as JSON; a FormData or a Blob as it is. */
	body?: unknown;
	search?: Record<string, string | number | boolean | null | undefined>;
	signal?: AbortSignal;
	/** Whole numbers of the answer that a number cannot hold are bigints: for what shows or changes data. */
	exact?: boolean;
	/** Another key than the session's, such as one that is being tried. */
	key?: string;
}

/** How many requests are on their way. The page is ready when there are none. */
export const pending = signal(0);

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Sends a request to a path of the project, such as "insights/", or to an absolute one, such as "/api/users/@me/". */
export async function send<T>(method: Method, path: string, options: RequestOptions = {}): Promise<Answer<T>> {
	const { text, headers } = await exchange(method, path, options, async (response, started) => {
		const text = await response.text();
		return { text, headers: provenance(response, text.length, started) };
	});
	try {
		return { data: (text ? (options.exact ? parse : JSON.parse)(text) : undefined) as T, headers };
	} catch {
		throw new ApiError(headers.status, "not_json", "The answer is not JSON. It may come from a proxy between this page and the server.");
	}
}

/** An answer as it was sent. */
export interface Raw {
	body: Blob;
	contentType: string;
	/** The page after a page of CSV or NDJSON. */
	nextCursor: string;
	headers: Provenance;
}

/** Sends a request, and leaves its answer as it is: rows as CSV, a file, or the text of JSON. */
export async function sendRaw(method: Method, path: string, options: RequestOptions = {}): Promise<Raw> {
	return exchange(method, path, options, async (response, started) => {
		const body = await response.blob();
		const header = (name: string) => response.headers.get(name) ?? "";
		return {
			body,
			contentType: header("Content-Type"),
			nextCursor: header("Next-Cursor"),
			headers: provenance(response, body.size, started),
		};
	});
}

async function exchange<T>(
	method: Method,
	path: string,
	options: RequestOptions,
	read: (response: Response, started: number) => Promise<T>,
): Promise<T> {
	const key = options.key ?? session.value?.key;
	const headers: Record<string, string> = { Accept: "application/json" };
	if (key) headers.Authorization = `Bearer ${key}`;
	const raw = options.body instanceof FormData || options.body instanceof Blob ? options.body : null;
	if (options.body !== undefined && !raw) headers["Content-Type"] = "application/json";
	const started = performance.now();
	pending.value++;
	try {
		const response = await fetch(addressOf(path, options.search), {
			method,
			headers,
			body: raw ?? (options.body === undefined ? undefined : stringify(options.body)),
			signal: options.signal,
			credentials: "omit",
			cache: "no-store",
		});
		if (!response.ok) throw refused(response, await response.text(), key);
		return await read(response, started);
	} catch (error) {
		if (error instanceof ApiError || isAbort(error)) throw error;
		throw new ApiError(0, "unreachable", "The server cannot be reached. Check that it runs, and try again.");
	} finally {
		pending.value--;
	}
}

// Records are read exactly: what they hold, such as the values of filters, is shown, changed and written back.
export const get = async <T>(path: string, search?: RequestOptions["search"], signal?: AbortSignal): Promise<T> =>
	(await send<T>("GET", path, { search, signal, exact: true })).data;
export const post = async <T>(path: string, body: unknown = {}): Promise<T> => (await send<T>("POST", path, { body, exact: true })).data;
export const patch = async <T>(path: string, body: unknown): Promise<T> => (await send<T>("PATCH", path, { body, exact: true })).data;
export const remove = async (path: string): Promise<void> => {
	await send<void>("DELETE", path);
};

/** Reports whether a request was given up by this page. */
export function isAbort(error: unknown): boolean {
	return error instanceof DOMException && error.name === "AbortError";
}

/** What to show of any error. */
export function messageOf(error: unknown): string {
	if (error instanceof ApiError) return error.detail;
	return error instanceof Error ? error.message : String(error);
}

function addressOf(path: string, search: RequestOptions["search"] = {}): string {
	const base = path.startsWith("/") ? path : `/api/projects/${session.value?.project.id || "@current"}/${path}`;
	const given = new URLSearchParams();
	for (const [name, value] of Object.entries(search)) {
		if (value !== undefined && value !== null && value !== "") given.set(name, String(value));
	}
	const query = given.toString();
	return query ? `${base}${base.includes("?") ? "&" : "?"}${query}` : base;
}

function refused(response: Response, text: string, key: string | undefined): ApiError {
	let body: Record<string, unknown> = {};
	try {
		body = JSON.parse(text);
	} catch {
		// It did not come from the API.
	}
	const detail = typeof body.detail === "string" ? body.detail : `The server answered ${response.status} ${response.statusText}.`;
	if (response.status === 401 && key && key === session.value?.key) end();
	const wait = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
	return new ApiError(
		response.status,
		String(body.code ?? "error"),
		detail,
		typeof body.attr === "string" ? body.attr : null,
		(body.extra as Record<string, unknown>) ?? {},
		Number.isNaN(wait) ? null : wait,
	);
}

function provenance(response: Response, size: number, started: number): Provenance {
	const header = (name: string) => response.headers.get(name) ?? "";
	const age = Number.parseInt(header("Age"), 10);
	return {
		status: response.status,
		cacheStatus: header("Cache-Status"),
		age: Number.isNaN(age) ? null : age,
		cacheControl: header("Cache-Control"),
		serverTiming: header("Server-Timing"),
		rateLimit: header("RateLimit"),
		rateLimitPolicy: header("RateLimit-Policy"),
		requestId: header("X-Request-Id"),
		elapsed: performance.now() - started,
		size,
	};
}
