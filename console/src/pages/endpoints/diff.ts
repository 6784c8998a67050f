/** A line of a comparison of two texts. */
export interface DiffLine {
	kind: "same" | "added" | "removed";
	text: string;
}

/** Beyond this many pairs of lines, what differs is shown as a whole. */
const mostPairs = 4_000_000;

/** The lines of two texts, with those that only one of them has marked. */
export function diffLines(before: string, after: string): DiffLine[] {
	const a = before.split("\n");
	const b = after.split("\n");
	let start = 0;
	while (start < a.length && start < b.length && a[start] === b[start]) start++;
	let end = 0;
	while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
	const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ kind: "same", text }));
	return [
		...same(a.slice(0, start)),
		...changed(a.slice(start, a.length - end), b.slice(start, b.length - end)),
		...same(a.slice(a.length - end)),
	];
}

/** Compares by the longest common subsequence of lines. */
function changed(a: string[], b: string[]): DiffLine[] {
	const removed = (text: string): DiffLine => ({ kind: "removed", text });
	const added = (text: string): DiffLine => ({ kind: "added", text });
	if (a.length * b.length > mostPairs) return [...a.map(removed), ...b.map(added)];
	const width = b.length + 1;
	const longest = new Uint32Array((a.length + 1) * width);
	const at = (i: number, j: number) => longest[i * width + j] ?? 0;
	for (let i = a.length - 1; i >= 0; i--) {
		for (let j = b.length - 1; j >= 0; j--) {
			longest[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
		}
	}
	const lines: DiffLine[] = [];
	let i = 0;
	let j = 0;
	while (i < a.length || j < b.length) {
		const left = a[i];
		const right = b[j];
		if (left !== undefined && left === right) {
			lines.push({ kind: "same", text: left });
			i++;
			j++;
		} else if (left !== undefined && (right === undefined || at(i + 1, j) >= at(i, j + 1))) {
			lines.push(removed(left));
			i++;
		} else if (right !== undefined) {
			lines.push(added(right));
			j++;
		}
	}
	return lines;
}
