// The API counts characters as code points, the browser as UTF-16 units: they differ after an emoji.

/** The number of code points before a place of a text. */
export function toCodePoints(text: string, at: number): number {
	let count = 0;
	for (let i = 0; i < at; i++) {
		if (!isSecondHalf(text.charCodeAt(i))) count++;
	}
	return count;
}

/** The place of a text after a number of code points. It is never beyond the text's end. */
export function fromCodePoints(text: string, count: number): number {
	let at = 0;
	for (let left = count; left > 0 && at < text.length; left--) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
	return at;
}

const isSecondHalf = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
