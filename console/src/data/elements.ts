/** One element of a chain, as autocapture recorded it. */
export interface Element {
	tag: string;
	classes: string[];
	text?: string;
	/** The other attributes, such as href, in the order of the chain. */
	attributes: [string, string][];
}

/** How much of a chain is read: more than autocapture records of any page. */
const longest = 200_000;

/** How many elements of a chain are read. */
const most = 500;

/** The elements of a chain, from the one that was clicked outwards. Of a chain that is too long for one, the beginning. */
export function parseElements(chain: string): Element[] {
	return split(chain.slice(0, longest)).map(parseElement);
}

/** The parts of a chain between semicolons that are in no quotes. */
function split(chain: string): string[] {
	const parts: string[] = [];
	let [from, quoted] = [0, false];
	for (let at = 0; at < chain.length; at++) {
		const sign = chain[at];
		if (sign === "\\" && quoted) at++;
		else if (sign === '"') quoted = !quoted;
		else if (sign === ";" && !quoted) {
			parts.push(chain.slice(from, at));
			from = at + 1;
		}
	}
	return [...parts, chain.slice(from)].filter(Boolean).slice(0, most);
}

function parseElement(text: string): Element {
	const colon = text.indexOf(":");
	const head = colon < 0 ? text : text.slice(0, colon);
	const [tag = "", ...classes] = head.split(".");
	const element: Element = { tag, classes, attributes: [] };
	if (colon < 0) return element;
	for (const [name, value] of attributesOf(text, colon + 1)) {
		if (name === "text") element.text = value;
		else element.attributes.push([name.replace(/^attr__/, ""), value]);
	}
	return element;
}

/** The attributes in a text, such as href="/a", from a place on up to what is none. */
function attributesOf(text: string, from: number): [string, string][] {
	const found: [string, string][] = [];
	const value = /"((?:\\[^]|[^"\\])*)"/y;
	for (let equals = text.indexOf('="', from); equals >= 0; equals = text.indexOf('="', from)) {
		value.lastIndex = equals + 1;
		const [whole, escaped = ""] = value.exec(text) ?? [];
		if (whole === undefined) break;
		found.push([text.slice(from, equals), escaped.replace(/\\([^])/g, "$1")]);
		from = value.lastIndex;
	}
	return found;
}

/** An element as its tag would be written, without its children. */
export function tagOf(element: Element): string {
	const attributes = element.attributes.filter(([name]) => !name.startsWith("nth-") && name !== "class");
	const id = element.classes.length ? ` class="${element.classes.join(" ")}"` : "";
	return `<${element.tag}${id}${attributes.map(([name, value]) => ` ${name}="${value}"`).join("")}>`;
}
