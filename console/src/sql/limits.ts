/** Strings, names in quotes, comments, and names of members such as that in properties.limit. */
const opaque = /'(?:[^'\\]|\\[^]|'')*'|"(?:[^"\\]|\\[^])*"|`(?:[^`\\]|\\[^])*`|--.*|\/\/.*|\/\*[^]*?\*\/|\.[a-z_$]\w*/gi;

const blank = (text: string): string => " ".repeat(text.length);

/** A text with blanks in place of what is no syntax. */
const syntaxOf = (text: string): string => text.replace(opaque, blank);

/** A text without opaque parts, with blanks in place of all that is in parentheses. */
function outermost(text: string): string {
	let depth = 0;
	let out = "";
	for (const piece of text.split(/([()])/)) {
		if (piece === ")") depth = Math.max(0, depth - 1);
		out += depth === 0 ? piece : blank(piece);
		if (piece === "(") depth++;
	}
	return out;
}

/** Reports whether a LIMIT can be written behind a text whose result has more rows, and so has none. It comes before an OFFSET. */
export const takesLimit = (text: string): boolean => !/\boffset\b/i.test(outermost(syntaxOf(text)));

/**
 * What has at most 100 rows of a UNION, INTERSECT or EXCEPT: the parts of a UNION that have no LIMIT, or else the result, which has none;
 * undefined if there is a LIMIT everywhere, and for any other text.
 */
export function cutOf(text: string): "parts" | "result" | undefined {
	const cut = unlimited(syntaxOf(text));
	return cut === "select" ? undefined : cut;
}

const operators = /\b(?:union|intersect|except)\b/gi;

/** What lacks a LIMIT in a text without opaque parts: the only SELECT, parts of a UNION, or the result of a set. */
function unlimited(text: string): "select" | "parts" | "result" | undefined {
	const outside = outermost(text);
	const found = [...outside.matchAll(operators)];
	const starts = [0, ...found.map((operator) => operator.index)];
	const parts = starts.map((from, i) => ({ text: text.slice(from, starts[i + 1]), outside: outside.slice(from, starts[i + 1]) }));
	const last = parts.at(-1) as Part;
	if (inParentheses(last) && hasLimit(last)) return undefined; // a LIMIT after parentheses is that of the result
	if (found.some(([operator]) => operator.toLowerCase() !== "union")) return "result";
	const lacking = parts.map((part) => {
		if (hasLimit(part)) return undefined;
		return inParentheses(part) ? unlimited(contentOf(part)) : "select";
	});
	return found.length === 0 ? lacking[0] : lacking.some(Boolean) ? "parts" : undefined;
}

/** A part of a set, whole and with blanks in its parentheses. */
interface Part {
	text: string;
	outside: string;
}

/** LIMIT n BY is another clause. */
const hasLimit = ({ outside }: Part): boolean => /\blimit\b(?![^]*\bby\b)/i.test(outside);

const inParentheses = ({ outside }: Part): boolean => outside.includes("(") && !/\bselect\b/i.test(outside);

/** What is in the last parentheses of a part, before which there may be a WITH and after which an ORDER BY. */
function contentOf({ text, outside }: Part): string {
	const query = outside.split(/\border\b/i)[0] as string;
	const from = query.lastIndexOf("(");
	return from < 0 ? "" : text.slice(from + 1, query.lastIndexOf(")"));
}
