import type { Provenance } from "./client";
import { duration } from "../ui/format";

/** What Cache-Status (RFC 9211) says of an answer. */
export interface CacheStatus {
	hit: boolean;
	/** Why the cache had no answer: "miss", "request". */
	fwd: string;
	collapsed: boolean;
	detail: string;
	/** Seconds for which it stays fresh; negative when it is stale. */
	ttl: number | null;
}

/** Reads a Cache-Status header. */
export function readCacheStatus(header: string): CacheStatus {
	const parameters = new Map<string, string>();
	for (const part of header.split(";").slice(1)) {
		const [name = "", value = ""] = part.trim().split("=", 2);
		parameters.set(name, value.replaceAll('"', ""));
	}
	const ttl = Number.parseInt(parameters.get("ttl") ?? "", 10);
	return {
		hit: parameters.has("hit"),
		fwd: parameters.get("fwd") ?? "",
		collapsed: parameters.has("collapsed"),
		detail: parameters.get("detail") ?? "",
		ttl: Number.isNaN(ttl) ? null : ttl,
	};
}

/** A span of time in words, with a tenth below three: "1 second", "5 minutes", "1.5 more hours". */
export function span(seconds: number, more = ""): string {
	const units: [string, number][] = [
		["day", 86400],
		["hour", 3600],
		["minute", 60],
		["second", 1],
	];
	const [unit, size] = units.find(([, size]) => seconds >= size) ?? ["second", 1];
	const exact = seconds / size;
	const count = exact < 3 ? Math.round(exact * 10) / 10 : Math.round(exact);
	return `${count}${more && ` ${more}`} ${unit}${count === 1 ? "" : "s"}`;
}

const details: Record<string, string> = {
	revalidating: "a new result is being computed",
	"database-unavailable": "the database cannot be reached, so this is the last result there was",
	pinned: "the rows that the cursor names",
};

/** Where an answer comes from and how long it stays fresh, in a sentence: "From the cache: 12 seconds old, fresh for 5 more minutes." */
export function explainCache(headers: Pick<Provenance, "cacheStatus" | "cacheControl" | "age">): string {
	if (!headers.cacheStatus) return "Not cached: the answer was made for this request.";
	const status = readCacheStatus(headers.cacheStatus);
	const parts: string[] = [];
	if (headers.age !== null) parts.push(`${span(headers.age)} old`);
	const fresh = status.ttl ?? maxAge(headers.cacheControl);
	if (fresh !== null && fresh > 0) parts.push(`fresh for ${span(fresh, status.hit ? "more" : "")}`);
	else if (fresh !== null) parts.push("no longer fresh");
	if (status.detail) parts.push(details[status.detail] ?? status.detail);
	const rest = parts.length > 0 ? `: ${parts.join(", ")}` : "";
	return `${originOf(status)}${rest}.`;
}

function originOf(status: CacheStatus): string {
	if (status.hit) return "From the cache";
	if (status.collapsed) return "Computed once for this and other requests";
	if (status.fwd === "request") return "Computed again, as the request asked";
	return "Computed now";
}

function maxAge(cacheControl: string): number | null {
	const found = /max-age=(\d+)/.exec(cacheControl);
	return found ? Number(found[1]) : null;
}

const timings: Record<string, string> = { total: "in all", compile: "to compile the query", clickhouse: "in ClickHouse" };

/** What Server-Timing says: "43.1 ms in all, 0.2 ms to compile the query, 42.2 ms in ClickHouse". */
export function explainTiming(header: string): string {
	return header
		.split(",")
		.map((part) => {
			const [name = "", ...parameters] = part.trim().split(";");
			const spent = parameters.map((p) => /^\s*dur=([\d.]+)/.exec(p)?.[1]).find((found) => found !== undefined);
			return spent === undefined ? "" : `${duration(Number(spent) / 1000)} ${timings[name] ?? `for ${name}`}`;
		})
		.filter(Boolean)
		.join(", ");
}

const limited: Record<string, string> = { key: "this key", token: "this token", endpoint: "all runs of the endpoint" };

/** What RateLimit and its policy say, a sentence for each rate; none for answers that cost nothing. */
export function explainRate(header: string, policy: string): string[] {
	const quotas = readRates(policy);
	return [...readRates(header)].map(([name, { r = 0, t = 0 }]) => {
		const { q, w } = quotas.get(name) ?? {};
		const of = q === undefined || w === undefined ? "" : ` of ${q} in ${span(w)}`;
		const more = t > 0 ? `, one more in ${span(t)}` : "";
		return `${r}${of} left for ${limited[name] ?? name}${more}`;
	});
}

/** Reads the members of a RateLimit header: "key";r=239;t=1. */
function readRates(header: string): Map<string, Record<string, number>> {
	const rates = new Map<string, Record<string, number>>();
	for (const [, name = "", rest = ""] of header.matchAll(/"([^"]*)"((?:;[a-z]+=[^;,]*)*)/g)) {
		const values: Record<string, number> = {};
		for (const [, key = "", value = ""] of rest.matchAll(/;([a-z]+)=([^;,]*)/g)) values[key] = Number(value);
		rates.set(name, values);
	}
	return rates;
}
