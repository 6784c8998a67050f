/** One element of a chain, as autocapture recorded it. */
export interface Element {
	tag: string;
	classes: string[];
	text?: string;
	/** The other attributes, such as href, in the order of the chain. */
	attributes: [string, string][];
}

/** The elements of a chain, from the one that was clicked outwards. */
export function parseElements(chain: string): Element[] {
	return (chain.match(/(?:[^;"]|"(?:\\.|[^"\\])*")+/g) ?? []).map(parseElement);
}

function parseElement(text: string): Element {
	const colon = text.indexOf(":");
	const head = colon < 0 ? text : text.slice(0, colon);
	const [tag = "", ...classes] = head.split(".");
	const element: Element = { tag, classes, attributes: [] };
	if (colon < 0) return element;
	for (const [, name = "", value = ""] of text.slice(colon + 1).matchAll(/([^="]+)="((?:\\.|[^"\\])*)"/g)) {
		const plain = value.replace(/\\(.)/g, "$1");
		if (name === "text") element.text = plain;
		else element.attributes.push([name.replace(/^attr__/, ""), plain]);
	}
	return element;
}

/** An element as its tag would be written, without its children. */
export function tagOf(element: Element): string {
	const attributes = element.attributes.filter(([name]) => !name.startsWith("nth-") && name !== "class");
	const id = element.classes.length ? ` class="${element.classes.join(" ")}"` : "";
	return `<${element.tag}${id}${attributes.map(([name, value]) => ` ${name}="${value}"`).join("")}>`;
}
