import { afterEach, describe, expect, test, vi } from "vitest";
import { curlCommand, quoteShell } from "../src/api/curl";
import { explainCache, explainRate, explainTiming, span } from "../src/api/provenance";
import { customerText, usedIn } from "../src/pages/endpoints/breakdown";
import { comparable, queryOf, readWithVersions, textOf, type UsageWindow, type Version } from "../src/pages/endpoints/api";
import { diffLines } from "../src/pages/endpoints/diff";
import { controlOf, emptyForm, requestOf, runPath, type Variable } from "../src/pages/endpoints/form";
import {
	fieldsOf,
	formatsOf,
	type OpenApi,
	operationsOf,
	resolve,
	runBody,
	schemasOf,
	typeOf,
	variablesOf,
} from "../src/pages/endpoints/openapi";
import { endpointChanges, endpointForm, versionChanges, versionForm } from "../src/pages/endpoints/changes";
import { readAnswer } from "../src/pages/endpoints/read";
import { tokenSeconds } from "../src/pages/endpoints/tokens";
import { pythonLiteral, quoteGo, snippet } from "../src/pages/endpoints/snippets";

describe("where an answer comes from", () => {
	const headers = (cacheStatus: string, age: number | null = null, cacheControl = "") => ({ cacheStatus, age, cacheControl });
	test.each([
		[headers("caddy-analytics; hit; ttl=300", 12), "From the cache: 12 seconds old, fresh for 5 more minutes."],
		[headers("caddy-analytics; hit; ttl=-8", 308), "From the cache: 5 minutes old, no longer fresh."],
		[
			headers("caddy-analytics; hit; ttl=-8; detail=revalidating", 61),
			"From the cache: 1 minute old, no longer fresh, a new result is being computed.",
		],
		[
			headers("caddy-analytics; hit; ttl=-1; detail=database-unavailable"),
			"From the cache: no longer fresh, the database cannot be reached, so this is the last result there was.",
		],
		[headers("caddy-analytics; hit; detail=pinned", 5), "From the cache: 5 seconds old, the rows that the cursor names."],
		[headers("caddy-analytics; fwd=miss; stored", null, "private, max-age=899"), "Computed now: fresh for 15 minutes."],
		[headers("caddy-analytics; fwd=request; stored"), "Computed again, as the request asked."],
		[headers("caddy-analytics; fwd=miss; collapsed"), "Computed once for this and other requests."],
		[headers(""), "Not cached: the answer was made for this request."],
	])("%o", (given, want) => expect(explainCache(given)).toBe(want));

	test("spans have the largest unit that fits", () => {
		expect([0, 1, 59, 60, 5400, 86400, 200000].map((seconds) => span(seconds))).toEqual([
			"0 seconds",
			"1 second",
			"59 seconds",
			"1 minute",
			"1.5 hours",
			"1 day",
			"2.3 days",
		]);
	});

	test("what took how long", () => {
		expect(explainTiming("total;dur=43.072, compile;dur=0.242, clickhouse;dur=42.222")).toBe(
			"43.1 ms in all, 0.2 ms to compile the query, 42.2 ms in ClickHouse",
		);
		expect(explainTiming("")).toBe("");
		expect(explainTiming("total;dur=1234, other;dur=1, none")).toBe("1.2 s in all, 1 ms for other");
	});

	test("what is left of rates", () => {
		const policy = '"endpoint";q=60;w=60;pk=:b3JkZXJz:, "key";q=240;w=3600';
		expect(explainRate('"endpoint";r=59;t=1;pk=:b3JkZXJz:, "key";r=212;t=0', policy)).toEqual([
			"59 of 60 in 1 minute left for all runs of the endpoint, one more in 1 second",
			"212 of 240 in 1 hour left for this key",
		]);
		expect(explainRate("", "")).toEqual([]);
	});
});

describe("the form of a run", () => {
	const variable = (name: string, schema: Variable["schema"], required = false): Variable => ({ name, schema, required });
	const variables = [
		variable("plan", { type: "string", default: "pro" }),
		variable("year", { type: "number" }),
		variable("paid", { type: "boolean" }),
		variable("size", { enum: [1, 2] }),
		variable("cities", { type: "array", items: { type: "string", enum: ["a", "b"] } }),
		variable("ids", { type: "array", items: { type: "string" } }),
		variable("day", { type: "string", format: "date" }),
	];

	test("each type has its control", () => {
		expect(variables.map(controlOf)).toEqual(["text", "number", "boolean", "choice", "choices", "list", "date"]);
	});

	test("only what was given is sent, each value as its type", () => {
		const values = { year: "2024", paid: "false", size: "2", cities: ["b"], ids: " x \n\ny", day: "" };
		const form = { ...emptyForm, values, nulls: { plan: true }, limit: "10", offset: "20", version: "3", refresh: "force" };
		expect(requestOf(form, variables, true)).toEqual({
			body: {
				variables: { plan: null, year: 2024, paid: false, size: 2, cities: ["b"], ids: ["x", "y"] },
				limit: 10,
				offset: 20,
				version: 3,
				refresh: "force",
			},
			mistakes: {},
		});
		expect(requestOf({ ...emptyForm, limit: "5" }, variables, false).body).toEqual({});
		const large = { ...emptyForm, values: { year: "9007199254740993" } };
		expect(requestOf(large, variables, false).body).toEqual({ variables: { year: 9007199254740993n } });
	});

	test("mistakes are named by their field", () => {
		const form = { ...emptyForm, values: { year: "x" }, limit: "0", offset: "1.5", version: "v" };
		expect(Object.keys(requestOf(form, variables, true).mistakes).toSorted()).toEqual(["(limit)", "(offset)", "(version)", "year"]);
		expect(requestOf({ ...emptyForm, limit: "", offset: "5" }, [], true).mistakes).toEqual({ "(offset)": "An offset needs a limit" });
	});

	test("the address has the format", () => {
		expect(runPath("a b", { format: "arrays", exact: false })).toBe("endpoints/a%20b/run");
		expect(runPath("a", { format: "csv", exact: true })).toBe("endpoints/a/run.csv");
		expect(runPath("a", { format: "objects", exact: true })).toBe("endpoints/a/run.objects?int64=string");
	});
});

describe("an answer", () => {
	const read = (format: string, text: string | null) => readAnswer({ format, text, raw: { nextCursor: "n" } });

	test("rows have their types and the cursor", () => {
		const body = {
			results: [["a", 1]],
			columns: ["x", "n"],
			types: [["x", "String"], "LowCardinality(Nullable(Int64))"],
			next_cursor: "c",
		};
		expect(read("arrays", JSON.stringify(body))).toEqual({
			shown: {
				columns: [
					{ title: "x", detail: "String", number: false },
					{ title: "n", detail: "LowCardinality(Nullable(Int64))", number: true },
				],
				rows: [["a", 1]],
			},
			result: body,
			cursor: "c",
		});
	});

	test("objects and lines have the names of their fields", () => {
		const shown = { columns: [{ title: "n", number: true }], rows: [[1], [2]] };
		expect(read("objects", '{"results": [{"n": 1}, {"n": 2}]}')).toMatchObject({ shown, cursor: "" });
		expect(read("ndjson", '{"n": 1}\n{"n": 2}\n')).toEqual({ shown, result: null, cursor: "n" });
	});

	test("what is no list of rows has none", () => {
		expect(read("arrays", '{"results": {"a": 1}}').shown).toBeNull();
		expect(read("csv", "a,b")).toEqual({ shown: null, result: null, cursor: "n" });
		expect(read("parquet", null).shown).toBeNull();
	});
});

test("a token lives from a second to a day", () => {
	expect(["15", " 0.5 ", "1440"].map(tokenSeconds)).toEqual([900, 30, 86400]);
	expect(["", "0", "-1", "1441", "x", "1e9"].map(tokenSeconds)).toEqual([null, null, null, null, null, null]);
});

describe("an endpoint is loaded", () => {
	afterEach(() => vi.unstubAllGlobals());

	/** Answers requests for an endpoint with these versions, of which a page has the newest 100. */
	function answers(current: number, newest: number) {
		const asked = vi.fn(async (url: string) => {
			const path = url.slice(url.indexOf("endpoints/"));
			if (path.startsWith("endpoints/a/versions/")) {
				return Response.json({ results: Array.from({ length: Math.min(newest, 100) }, (_, n) => ({ version: newest - n })) });
			}
			return Response.json(path === "endpoints/a/" ? { current_version: current } : { version: current, is_current: true });
		});
		vi.stubGlobal("fetch", asked);
		return asked;
	}

	test("with its newest versions", async () => {
		const asked = answers(2, 3);
		const { record, versions } = await readWithVersions("a");
		expect([record.current_version, versions.map((v) => v.version)]).toEqual([2, [3, 2, 1]]);
		expect(asked).toHaveBeenCalledTimes(2);
	});

	test("and the current one, however old", async () => {
		answers(2, 150);
		const { versions } = await readWithVersions("a");
		expect(versions).toHaveLength(101);
		expect(versions.at(-1)).toEqual({ version: 2, is_current: true });
	});
});

describe("the settings send only what was changed", () => {
	const record = {
		description: "What was sold",
		is_active: true,
		data_freshness_seconds: 900,
		tags: ["one, two"],
		rate_limit: null,
		deprecated_at: "2026-06-30T12:34:56Z",
		sunset_at: null,
	} as unknown as Version;

	test("of an endpoint", () => {
		const form = endpointForm(record);
		expect(endpointChanges(form, record)).toEqual({});
		expect(endpointChanges({ ...form, rate: " 60/m" }, record)).toEqual({ rate_limit: "60/m" });
		expect(endpointChanges({ ...form, tags: "one" }, record)).toEqual({ tags: ["one"] });
		expect(endpointChanges({ ...form, active: false }, record)).toEqual({ is_active: false });
	});

	test("of a version", () => {
		const form = versionForm(record);
		expect(versionChanges(form, record)).toEqual({});
		expect(versionChanges({ ...form, description: "" }, record)).toEqual({ description: "" });
		expect(versionChanges({ ...form, freshness: "60", deprecated: "" }, record)).toEqual({
			data_freshness_seconds: 60,
			deprecated_at: null,
		});
		expect(versionChanges({ ...form, sunset: "2026-07-01" }, record)).toEqual({ sunset_at: "2026-07-01T00:00:00Z" });
	});
});

describe("snippets", () => {
	const body = { variables: { name: 'O\'Brien "x" `y` $HOME \\ \n ü', on: true, none: null }, limit: 2 };
	const call = { url: "http://localhost:8080/api/projects/1/endpoints/a/run", body, format: "arrays", file: "a.json" };

	test("a shell reads the quotes as they are", () => {
		expect(quoteShell("a'b")).toBe(`'a'\\''b'`);
		expect(snippet("curl", call)).toContain(`-d '{"variables":{"name":"O'\\''Brien \\"x\\" \`y\` $HOME \\\\ \\n ü"`);
		expect(snippet("curl", { ...call, format: "parquet", file: "a.parquet" })).toMatch(/ -o 'a\.parquet'$/);
	});

	test("a command without a body reads", () => {
		expect(curlCommand("http://a/?b=1")).toBe(`curl -sS --fail-with-body 'http://a/?b=1' \\\n  -H "Authorization: Bearer $ANALYTICS_KEY"`);
		expect(curlCommand("http://a/", { b: 1 }, { pretty: true })).toMatch(/ -d '\{\n {2}"b": 1\n\}'$/);
	});

	test("Python has its own names of constants", () => {
		expect(pythonLiteral({ a: [true, false, null, 1.5, "x\ny"] })).toBe('{"a": [True, False, None, 1.5, "x\\ny"]}');
	});

	test("Go has raw texts where it can", () => {
		expect(quoteGo('{"a":"\\n"}')).toBe('`{"a":"\\n"}`');
		expect(quoteGo("a`b")).toBe('"a`b"');
		expect(snippet("go", call)).toContain("`y`");
	});

	test("TypeScript sends what the form has", async () => {
		const source = snippet("typescript", call);
		const sent = /body: JSON\.stringify\(([\s\S]*?)\),\n\}\);/.exec(source)?.[1] ?? "";
		expect(JSON.parse(sent)).toEqual(body);
	});

	test.each(["curl", "typescript", "python", "go"] as const)("%s keeps the digits of large numbers", (language) => {
		const source = snippet(language, { ...call, body: { variables: { id: 9007199254740993n } } });
		expect(source).toContain("9007199254740993");
		expect(source).not.toMatch(/JSON\.stringify\([^)]*9007199254740993/); // a program would round it there
	});
});

describe("a comparison of lines", () => {
	const marked = (a: string, b: string) => diffLines(a, b).map((line) => ({ same: " ", added: "+", removed: "-" })[line.kind] + line.text);
	test.each([
		["a\nb", "a\nb", [" a", " b"]],
		["a\nb\nc", "a\nx\nc", [" a", "-b", "+x", " c"]],
		["a\nb\nc\nd", "b\nd\ne", ["-a", " b", "-c", " d", "+e"]],
		["a", "a\na", [" a", "+a"]],
		["", "a", ["-", "+a"]],
	])("%j and %j", (a, b, want) => expect(marked(a, b)).toEqual(want));

	test("both texts can be put together again", () => {
		const lines = diffLines("a\nb\na\nc\nb\nb\na", "c\nb\na\nb\na\nc");
		const side = (kind: "added" | "removed") =>
			lines
				.filter((line) => line.kind === "same" || line.kind === kind)
				.map((line) => line.text)
				.join("\n");
		expect(side("removed")).toBe("a\nb\na\nc\nb\nb\na");
		expect(side("added")).toBe("c\nb\na\nb\na\nc");
	});

	test("what is too much to compare is shown as a whole", () => {
		const many = (name: string) => Array.from({ length: 2500 }, (_, i) => `${name}${i}`).join("\n");
		expect(diffLines(many("a"), many("b"))).toHaveLength(5000);
	});
});

describe("an OpenAPI document", () => {
	const document = {
		openapi: "3.0.3",
		info: { title: "a", version: "1" },
		paths: {
			"/api/environments/1/endpoints/a/run": {
				post: {
					operationId: "run_a",
					parameters: [{ $ref: "#/components/parameters/P" }],
					requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Request" } } } },
					responses: {
						200: {
							description: "Rows.",
							content: { "application/json": { schema: { $ref: "#/components/schemas/Row" } } },
							headers: { Age: { $ref: "#/components/headers/Age" } },
						},
						400: { $ref: "#/components/responses/Bad" },
					},
				},
			},
			"/api/environments/1/endpoints/a/run.csv": { post: {} },
		},
		components: {
			headers: { Age: { description: "Seconds." } },
			parameters: { P: { name: "int64", in: "query", schema: { type: "string", enum: ["string"] } } },
			responses: { Bad: { description: "Wrong." } },
			schemas: {
				Request: {
					type: "object",
					properties: { variables: { $ref: "#/components/schemas/Variables" }, limit: { type: "integer", minimum: 1 } },
				},
				Variables: {
					type: "object",
					required: ["year"],
					properties: { year: { type: "number", format: "double" }, plan: { type: "string", default: "pro", nullable: true } },
				},
				Row: {
					type: "object",
					required: ["b"],
					properties: {
						a: { type: "array", items: { $ref: "#/components/schemas/Row" }, "x-order": 2 },
						b: { type: "string", "x-order": 1 },
					},
				},
				Both: { allOf: [{ $ref: "#/components/schemas/Row" }, { type: "object", properties: { c: { type: "boolean" } } }] },
				Round: { $ref: "#/components/schemas/Round" },
			},
		},
	} as unknown as OpenApi;

	test("operations have their parts, with references followed", () => {
		const [run, csv] = operationsOf(document);
		expect(run?.parameters).toMatchObject([{ name: "int64", place: "query", type: '"string"' }]);
		expect(run?.body.map((f) => [f.name, f.type])).toEqual([
			["variables", "Variables"],
			["limit", "integer"],
		]);
		expect(run?.responses).toEqual([
			{
				status: "200",
				description: "Rows.",
				contents: [{ media: "application/json", type: "Row", schema: "Row" }],
				headers: [{ name: "Age", description: "Seconds." }],
			},
			{ status: "400", description: "Wrong.", contents: [], headers: [] },
		]);
		expect(csv).toMatchObject({ method: "POST", body: [], responses: [] });
	});

	test("variables and formats are those of the run", () => {
		expect(variablesOf(document).map((v) => [v.name, v.required, v.schema.default])).toEqual([
			["year", true, undefined],
			["plan", false, "pro"],
		]);
		expect(runBody(document)?.properties?.limit?.minimum).toBe(1);
		expect(formatsOf(document)).toEqual(["arrays", "csv"]);
	});

	test("schemas name their fields in the order of the columns", () => {
		const of = (name: string) => schemasOf(document).find((s) => s.name === name);
		expect(of("Row")?.fields.map((f) => [f.name, f.type, f.required])).toEqual([
			["b", "string", true],
			["a", "list of Row", false],
		]);
		expect(of("Both")?.fields.map((f) => f.name)).toEqual(["b", "a", "c"]);
		expect(of("Round")?.fields).toEqual([]);
	});

	test("types are words", () => {
		expect(typeOf({ type: "string", format: "date-time", nullable: true })).toBe("string (date-time) or null");
		expect(typeOf({ anyOf: [{ type: "string" }, { type: "integer" }, { type: "string" }] })).toBe("string or integer");
		expect(typeOf({ type: "object", additionalProperties: { type: "number" } })).toBe("map of number");
		expect(typeOf(undefined)).toBe("any");
	});

	test("a reference that leads nowhere is nothing", () => {
		expect(resolve(document, "#/components/schemas/None")).toBeUndefined();
		expect(resolve(document, "#/constructor")).toBeUndefined();
		expect(resolve(document, "http://example.com/")).toBeUndefined();
		expect(fieldsOf(document, { $ref: "#/none" })).toEqual([]);
	});
});

describe("who ran an endpoint", () => {
	test.each([
		[{ customer_id: "acme" }, "customer_id = acme"],
		[
			{ customer_id: 7, plans: ["free", "pro"], at: { from: 1 }, all: true },
			'customer_id = 7, plans = ["free","pro"], at = {"from":1}, all = true',
		],
		[{}, ""],
	])("customer %o", (variables, want) => expect(customerText(variables)).toBe(want));

	test("those with calls in a time, most calls first", () => {
		const used = (id: string, hour: number, day: number) => ({
			id,
			hour: { calls: hour } as UsageWindow,
			day: { calls: day } as UsageWindow,
		});
		const rows = [used("a", 0, 9), used("b", 1, 5), used("c", 4, 5), used("d", 0, 0)];
		expect(usedIn(rows, "hour").map((row) => row.id)).toEqual(["c", "b"]);
		expect(usedIn(rows, "day").map((row) => row.id)).toEqual(["a", "b", "c"]);
		expect(rows.map((row) => row.id)).toEqual(["a", "b", "c", "d"]);
	});
});

describe("the query of a new version", () => {
	const plan = { variableId: "1", code_name: "plan", value: "pro" };
	const year = { variableId: "2", code_name: "year", value: 2030 };
	const before = {
		kind: "HogQLQuery",
		query: "select {variables.plan}, {variables.year}",
		variables: { "1": plan, "2": year },
		values: { limit: 5 },
		filters: { dateRange: { date_from: "-7d" } },
		modifiers: { timings: true },
	};

	test("has all of the earlier one but its text", () => {
		const text = "select {variables.year}, {variables.plan}, {variables.more}";
		expect(queryOf(text, before)).toEqual({ ...before, query: text });
		const wrapped = { kind: "DataVisualizationNode", source: before, display: "ActionsBar" };
		expect(queryOf(text, wrapped)).toEqual({ ...wrapped, source: { ...before, query: text } });
	});

	test("has no variables that the text does not use, or that are new", () => {
		expect(queryOf("select {variables.year}", before).variables).toEqual({ "2": year });
		expect(queryOf(before.query, before, ["plan"]).variables).toEqual({ "2": year });
		expect(queryOf("select 1", before)).not.toHaveProperty("variables");
	});

	test("of another kind is its JSON", () => {
		expect(queryOf('{"kind":"TrendsQuery"}', { kind: "TrendsQuery", series: [] })).toEqual({ kind: "TrendsQuery" });
		const large = { kind: "TrendsQuery", properties: [{ key: "id", operator: "gt", value: 9007199254740993n }] };
		expect(queryOf(textOf(large), large)).toEqual(large);
		expect(() => queryOf("{", { kind: "TrendsQuery" })).toThrow("The query is not valid JSON");
	});
});

test("only the newest version is compared as a draft: an older one would be made anew", () => {
	const versions = (...drafts: boolean[]) =>
		drafts.map((is_draft, i) => ({ version: drafts.length - i, is_draft, is_current: !is_draft }) as Version);
	expect(comparable(versions(true, true, false))?.version).toBe(3);
	expect(comparable(versions(false, true))).toBeUndefined();
	expect(comparable([])).toBeUndefined();
});
