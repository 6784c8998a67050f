import { describe, expect, test } from "vitest";
import { bounded } from "./bounded";
import { type Inline, readInline, readMarkdown, safeAddress } from "../src/ui/markdown";

const plain = (parts: Inline[]): string => parts.map((p) => ("parts" in p ? plain(p.parts) : p.text)).join("");
const kinds = (text: string) => readMarkdown(text).map((b) => b.kind);

describe("readMarkdown", () => {
	test("blocks", () => {
		const text = "# Sales\n\nOne\ntwo\n\n- a\n- b\n1. c\n\n> said\n> so\n\n```js\nlet a = 1;\n\n# no\n```\n---\nend";
		expect(kinds(text)).toEqual(["heading", "paragraph", "list", "list", "quote", "code", "rule", "paragraph"]);
	});
	test("a block of code without an end goes on to the end", () => {
		expect(readMarkdown("```\na\n\nb")).toEqual([{ kind: "code", text: "a\n\nb" }]);
	});
	test("HTML is text", () => {
		expect(readMarkdown("<img src=x onerror=alert(1)>")).toEqual([
			{ kind: "paragraph", lines: [[{ kind: "text", text: "<img src=x onerror=alert(1)>" }]] },
		]);
	});
});

describe("headings", () => {
	const titles: [string, string][] = [
		["# a", "a"],
		["## a b ## ", "a b"],
		["#  a##", "a"],
		["# #", "#"],
		["# ###", "#"],
		["###### a # b", "a # b"],
	];
	test.each(titles)("%s", (text, title) => {
		expect(readMarkdown(text)).toEqual([{ kind: "heading", level: text.indexOf(" "), parts: [{ kind: "text", text: title }] }]);
	});
	test.each(["#a", "# ", "####### a"])("%s is none", (text) => expect(kinds(text)).toEqual(["paragraph"]));
	test("take no time that grows faster than their length", () => {
		const gap = " ".repeat(100_000);
		for (const text of [`# a${gap}b`, `# ${gap}b`, `# a${"#".repeat(100_000)}b`, `# a${"# ".repeat(50_000)}b`]) {
			expect(bounded(() => kinds(text))).toEqual(["heading"]);
		}
	});
});

describe("readInline", () => {
	test("emphasis, code and links", () => {
		expect(readInline("a **b** *c* _d_ `e*f*` [g](https://h.example/i)")).toEqual([
			{ kind: "text", text: "a " },
			{ kind: "strong", parts: [{ kind: "text", text: "b" }] },
			{ kind: "text", text: " " },
			{ kind: "emphasis", parts: [{ kind: "text", text: "c" }] },
			{ kind: "text", text: " " },
			{ kind: "emphasis", parts: [{ kind: "text", text: "d" }] },
			{ kind: "text", text: " " },
			{ kind: "code", text: "e*f*" },
			{ kind: "text", text: " " },
			{ kind: "link", to: "https://h.example/i", parts: [{ kind: "text", text: "g" }] },
		]);
	});
	test("names with underscores and lone stars stay as they are", () => {
		for (const text of ["snake_case_name", "2 * 3 * 4", "**", "a_b", "[x]", "[x](y", "`"]) expect(plain(readInline(text))).toBe(text);
		expect(readInline("snake_case_name")).toHaveLength(1);
	});
	test("escapes", () => {
		expect(plain(readInline("\\*a\\* \\[b\\]"))).toBe("*a* [b]");
		expect(readInline("\\*a\\*").every((p) => p.kind === "text")).toBe(true);
	});
	test("links that run or load something are text", () => {
		for (const to of [
			"javascript:alert(1)",
			"JaVaScRiPt:alert(1)",
			"data:text/html,x",
			"vbscript:x",
			"file:///etc/passwd",
			"//evil.example",
			"/a",
		]) {
			expect(readInline(`[click](${to})`)).toEqual(to.includes("(") ? expect.anything() : [{ kind: "text", text: "click" }]);
			for (const p of readInline(`[click](${to})`)) expect(p.kind).toBe("text");
		}
	});
	test("no text takes long, or makes a part that was not there", () => {
		for (const text of [
			"*".repeat(4000),
			"_a".repeat(2000),
			"[".repeat(4000),
			"`".repeat(3999),
			"**a".repeat(1300),
			"[a](".repeat(1000),
			"> ".repeat(2000),
		]) {
			expect(readMarkdown(text).length).toBeGreaterThan(0);
		}
	});
});

test("safeAddress", () => {
	expect(safeAddress("https://a.example/b?c#d")).toBe("https://a.example/b?c#d");
	expect(safeAddress("mailto:a@b.c")).toBe("mailto:a@b.c");
	expect(safeAddress("java\nscript:alert(1)")).toBeNull();
	expect(safeAddress(" javascript:alert(1)")).toBeNull();
	expect(safeAddress("ftp://a.example")).toBeNull();
	expect(safeAddress("nothing")).toBeNull();
});
