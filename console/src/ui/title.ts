import { signal } from "@preact/signals";
import { type ComponentChildren, Fragment, isValidElement } from "preact";
import { useLayoutEffect } from "preact/hooks";

/** What the page that is shown says of itself; empty while it says nothing. */
export const heading = signal("");

/** Sets the heading as long as the component is there. */
export function useHeading(text: string): void {
	useLayoutEffect(() => {
		heading.value = text;
		return () => {
			heading.value = "";
		};
	}, [text]);
}

/** The text of a heading, without what stands beside it, such as badges and icons. */
export function plainText(of: ComponentChildren): string {
	const read = (part: ComponentChildren): string => {
		if (typeof part === "string" || typeof part === "number") return String(part);
		if (Array.isArray(part)) return part.map(read).join("");
		return isValidElement(part) && part.type === Fragment ? read(part.props.children) : "";
	};
	return read(of).trim();
}

/** The title of the document: "Daily visitors · Insights · Analytics". `section` is the entry of the navigation that the page belongs to. */
export function documentTitle(text: string, section: string): string {
	return [...new Set([text, section, "Analytics"])].filter(Boolean).join(" · ");
}
