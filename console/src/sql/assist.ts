import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { Diagnostic } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import { isAbort } from "../api/client";
import { ask, type QueryNode, type Warning } from "../api/query";
import { fromCodePoints, toCodePoints } from "./positions";

/** What a text is, and what it can name: docs/api.md, "Asking about queries". */
export interface Context {
	language: "hogQL" | "hogQLExpr";
	/** The query whose tables an expression reads. */
	sourceQuery?: QueryNode;
	/** Values of the names in braces. */
	globals?: Record<string, unknown>;
	variables?: Record<string, unknown>;
	/** Whether `{filters}` has a value. */
	filters?: Record<string, unknown>;
}

interface Suggestion {
	label: string;
	insertText: string;
	kind: string;
	detail: string | null;
	documentation: string | null;
	sortText: string | null;
}

interface Suggestions {
	suggestions: Suggestion[];
	incomplete_list: boolean;
}

interface Checked {
	isValid: boolean;
	errors: Warning[];
	warnings: Warning[];
	notices: Warning[];
}

/** How CodeMirror draws a kind of suggestion. */
const kinds: Record<string, string> = {
	Function: "function",
	Variable: "property",
	Folder: "class",
	Constant: "constant",
	Keyword: "keyword",
};

/** Suggestions for the word before the cursor. */
export async function complete(at: CompletionContext, context: Context): Promise<CompletionResult | null> {
	const word = at.matchBefore(/[\w$]*/);
	const from = word?.from ?? at.pos;
	if (!at.explicit && from === at.pos && !/[.{]$/.test(at.state.sliceDoc(Math.max(0, from - 1), from))) return null;
	const text = at.state.doc.toString();
	const control = new AbortController();
	at.addEventListener("abort", () => control.abort());
	try {
		const { data } = await ask(
			{
				kind: "HogQLAutocomplete",
				language: context.language,
				query: text,
				startPosition: toCodePoints(text, from),
				endPosition: toCodePoints(text, at.pos),
				sourceQuery: context.sourceQuery,
				globals: context.globals,
			},
			{ signal: control.signal },
		);
		const { suggestions, incomplete_list } = data as unknown as Suggestions;
		return { from, options: suggestions.map(toCompletion), validFor: incomplete_list ? undefined : /^[\w$]*$/ };
	} catch {
		return null; // completion is a help, and no error of it is worth a message
	}
}

function toCompletion(s: Suggestion): Completion {
	return {
		label: s.label,
		apply: s.insertText.endsWith("()") ? betweenParentheses(s.insertText) : s.insertText,
		type: kinds[s.kind] ?? "text",
		detail: s.detail ?? undefined,
		info: s.documentation ?? undefined,
		boost: s.kind === "Function" ? -1 : 1,
	};
}

/** Puts a call into the text, with the cursor where its arguments go. */
function betweenParentheses(call: string) {
	return (view: EditorView, _: Completion, from: number, to: number): void => {
		view.dispatch({ changes: { from, to, insert: call }, selection: { anchor: from + call.length - 1 }, userEvent: "input.complete" });
	};
}

/** What is wrong with the text of an editor, with the suggested replacements as actions. */
export async function check(view: EditorView, context: Context): Promise<Diagnostic[]> {
	const text = view.state.doc.toString();
	if (!text.trim()) return [];
	try {
		const { data } = await ask({
			kind: "HogQLMetadata",
			language: context.language,
			query: text,
			sourceQuery: context.sourceQuery,
			globals: context.globals,
			variables: context.variables,
			filters: context.filters,
		});
		return diagnostics(text, data as unknown as Checked);
	} catch (error) {
		if (!isAbort(error)) console.debug("the text was not checked", error);
		return [];
	}
}

/** The answer of HogQLMetadata as the editor underlines it. */
export function diagnostics(text: string, checked: Checked): Diagnostic[] {
	const lists = [
		["error", checked.errors],
		["warning", checked.warnings],
		["info", checked.notices],
	] as const;
	return lists.flatMap(([severity, found]) => found.map((w) => diagnostic(text, severity, w)));
}

function diagnostic(text: string, severity: Diagnostic["severity"], w: Warning): Diagnostic {
	const from = fromCodePoints(text, w.start ?? 0);
	const to = Math.max(from, fromCodePoints(text, w.end ?? text.length));
	const fix = w.fix;
	const actions = fix
		? [
				{
					name: `Replace with ${fix}`,
					apply: (view: EditorView, start: number, end: number) => view.dispatch({ changes: { from: start, to: end, insert: fix } }),
				},
			]
		: [];
	return { from, to, severity, message: w.message, actions };
}
