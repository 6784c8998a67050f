/** A part of a line of Markdown. */
export type Inline =
	| { kind: "text"; text: string }
	| { kind: "code"; text: string }
	| { kind: "strong" | "emphasis"; parts: Inline[] }
	| { kind: "link"; to: string; parts: Inline[] };

/** A block of Markdown. */
export type Block =
	| { kind: "heading"; level: number; parts: Inline[] }
	| { kind: "paragraph"; lines: Inline[][] }
	| { kind: "list"; ordered: boolean; items: Inline[][] }
	| { kind: "quote"; blocks: Block[] }
	| { kind: "code"; text: string }
	| { kind: "rule" };

const fence = /^\s*```/;
const heading = /^(#{1,6})\s+(\S[^]*)$/;
const rule = /^\s*([-*_])(\s*\1){2,}\s*$/;
const item = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const quote = /^\s*>\s?(.*)$/;

/** How deep quotes and emphasis may be in each other. */
const deepest = 8;

/** Reads the common part of Markdown: headings, lists, quotes, code, emphasis and links. Anything else, HTML too, is text. */
export function readMarkdown(text: string, depth = 0): Block[] {
	const lines = text.split(/\r?\n/);
	const blocks: Block[] = [];
	for (let i = 0; i < lines.length;) {
		const [block, next] = readBlock(lines, i, depth);
		if (block) blocks.push(block);
		i = next;
	}
	return blocks;
}

function readBlock(lines: string[], at: number, depth: number): [Block | null, number] {
	const line = lines[at] ?? "";
	if (!line.trim()) return [null, at + 1];
	if (fence.test(line)) return readCode(lines, at);
	const title = heading.exec(line);
	if (title) return [{ kind: "heading", level: title[1]?.length ?? 1, parts: readInline(titleOf(title[2] ?? "")) }, at + 1];
	if (rule.test(line)) return [{ kind: "rule" }, at + 1];
	if (quote.test(line) && depth < deepest) return readQuote(lines, at, depth);
	if (item.test(line)) return readList(lines, at);
	let end = at + 1;
	while (end < lines.length && continues(lines[end] ?? "")) end++;
	return [{ kind: "paragraph", lines: lines.slice(at, end).map((l) => readInline(l.trim())) }, end];
}

/** The text of a heading, without the # that may follow it. */
function titleOf(text: string): string {
	let end = text.trimEnd().length;
	while (end > 1 && text[end - 1] === "#") end--;
	return text.slice(0, end).trimEnd();
}

function continues(line: string): boolean {
	return !!line.trim() && ![fence, heading, rule, item, quote].some((pattern) => pattern.test(line));
}

function readCode(lines: string[], at: number): [Block, number] {
	let end = at + 1;
	while (end < lines.length && !fence.test(lines[end] ?? "")) end++;
	return [{ kind: "code", text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function readQuote(lines: string[], at: number, depth: number): [Block, number] {
	const inside: string[] = [];
	let end = at;
	for (; end < lines.length; end++) {
		const found = quote.exec(lines[end] ?? "");
		if (!found) break;
		inside.push(found[1] ?? "");
	}
	return [{ kind: "quote", blocks: readMarkdown(inside.join("\n"), depth + 1) }, end];
}

function readList(lines: string[], at: number): [Block, number] {
	const ordered = item.exec(lines[at] ?? "")?.[1] !== undefined;
	const items: Inline[][] = [];
	let end = at;
	for (; end < lines.length; end++) {
		const found = item.exec(lines[end] ?? "");
		if (!found || rule.test(lines[end] ?? "") || (found[1] !== undefined) !== ordered) break;
		items.push(readInline(found[2] ?? ""));
	}
	return [{ kind: "list", ordered, items }, end];
}

const inline =
	/\\([\\`*_[\]()#!>+.-])|(`+)([^`]+?)\2(?!`)|\[([^[\]]{1,500})\]\(\s*([^()\s]{1,2000})\s*\)|(\*\*|__)(?=\S)([^*_][\s\S]{0,2000}?)\6|(?<![\w*])([*_])(?=\S)([^*_]{1,2000})\8(?!\w)|\bhttps?:\/\/[^\s<>()[\]"']{1,2000}/;

/** Reads the emphasis, code and links of a line. */
export function readInline(text: string, depth = 0): Inline[] {
	const parts: Inline[] = [];
	let rest = text;
	while (rest) {
		const found = depth < deepest ? inline.exec(rest) : null;
		if (!found) break;
		if (found.index > 0) parts.push({ kind: "text", text: rest.slice(0, found.index) });
		parts.push(partOf(found, depth));
		rest = rest.slice(found.index + found[0].length);
	}
	if (rest) parts.push({ kind: "text", text: rest });
	return parts;
}

function partOf(found: RegExpExecArray, depth: number): Inline {
	const [whole, escaped, , code, label, to, , strong, , emphasis] = found;
	if (escaped !== undefined) return { kind: "text", text: escaped };
	if (code !== undefined) return { kind: "code", text: code.trim() };
	if (strong !== undefined) return { kind: "strong", parts: readInline(strong, depth + 1) };
	if (emphasis !== undefined) return { kind: "emphasis", parts: readInline(emphasis, depth + 1) };
	const address = safeAddress(to ?? whole);
	if (!address) return { kind: "text", text: label === undefined ? whole : label };
	return { kind: "link", to: address, parts: label === undefined ? [{ kind: "text", text: whole }] : readInline(label, depth + 1) };
}

/** An address that a link may have: one of the web or of a mailbox. Any other scheme gives null. */
export function safeAddress(address: string): string | null {
	try {
		const url = new URL(address);
		return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
	} catch {
		return null;
	}
}
