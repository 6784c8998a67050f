import { autocompletion } from "@codemirror/autocomplete";
import { PostgreSQL, SQLDialect, sql } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, linter } from "@codemirror/lint";
import { Annotation, Compartment, EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { useEffect, useRef } from "preact/hooks";
import { type Context, check, complete } from "./assist";

/** Words and names as HogQL has them, so that they are coloured as what they are. */
const dialect = SQLDialect.define({
	...PostgreSQL.spec,
	keywords: `${PostgreSQL.spec.keywords} prewhere final sample array asof anti semi any qualify settings global`,
	identifierQuotes: '`"',
	caseInsensitiveIdentifiers: false,
});

const colours = HighlightStyle.define([
	{ tag: tags.keyword, color: "var(--series-7)" },
	{ tag: [tags.string, tags.special(tags.string)], color: "var(--series-3)" },
	{ tag: [tags.number, tags.bool, tags.null], color: "var(--series-2)" },
	{ tag: tags.comment, color: "var(--text-soft)", fontStyle: "italic" },
	{ tag: [tags.typeName, tags.standard(tags.name)], color: "var(--series-5)" },
]);

const look = EditorView.theme({
	"&": { height: "100%", fontSize: "13px", backgroundColor: "var(--surface)", color: "var(--text)" },
	"&.cm-focused": { outline: "none" },
	".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
	".cm-content": { caretColor: "var(--text)" },
	".cm-cursor": { borderLeftColor: "var(--text)" },
	".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--text-soft)", border: "none" },
	".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--sunken) 60%, transparent)" },
	"&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
		backgroundColor: "var(--accent-soft)",
	},
	".cm-tooltip, .cm-panels": {
		backgroundColor: "var(--raised)",
		color: "var(--text)",
		border: "1px solid var(--line)",
		borderRadius: "var(--radius)",
		boxShadow: "var(--shadow-high)",
	},
	".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent-soft)", color: "var(--text)" },
	".cm-completionDetail": { color: "var(--text-soft)", fontStyle: "normal" },
	".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--on-accent)", borderRadius: "4px" },
	".cm-placeholder": { color: "var(--text-soft)" },
	".cm-matchingBracket": { backgroundColor: "var(--accent-soft) !important", outline: "none" },
});

/** Marks a change that the editor did not make itself. */
const fromOutside = Annotation.define<boolean>();

/**
 * An editor of a HogQL text, with completion, and with mistakes underlined while typing. It lives in a shadow root: there its styles
 * are sheets of their own, which a policy without 'unsafe-inline' allows.
 */
export function TextEditor({
	value,
	onValue,
	onRun,
	label,
	context = { language: "hogQL" },
	hint = "",
}: {
	value: string;
	onValue: (text: string) => void;
	/** What Ctrl Enter does. */
	onRun?: () => void;
	/** What the text is, for screen readers. */
	label: string;
	context?: Context;
	/** Shown while there is no text. */
	hint?: string;
}) {
	const host = useRef<HTMLDivElement>(null);
	const view = useRef<EditorView | null>(null);
	const latest = useRef({ onValue, onRun, context });
	latest.current = { onValue, onRun, context };
	const checks = useRef(new Compartment());
	const reported = useRef<string[]>([]); // texts that onValue got, and that have not come back as the value
	useEffect(() => {
		if (!host.current) return;
		const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
		const made = new EditorView({
			root,
			parent: root,
			state: EditorState.create({
				doc: value,
				extensions: [
					Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => runs(latest.current.onRun) }])),
					basicSetup,
					sql({ dialect }),
					syntaxHighlighting(colours),
					look,
					EditorView.lineWrapping,
					EditorView.domEventHandlers({ beforeinput: replaceSelection }),
					EditorView.contentAttributes.of({ "aria-label": label }),
					placeholder(hint),
					autocompletion({ override: [(at) => complete(at, latest.current.context)] }),
					lintGutter(),
					checks.current.of(checker(latest)),
					EditorView.updateListener.of((update) => {
						if (!update.docChanged || update.transactions.some((t) => t.annotation(fromOutside))) return;
						const text = update.state.doc.toString();
						reported.current.push(text);
						latest.current.onValue(text);
					}),
				],
			}),
		});
		view.current = made;
		return () => made.destroy();
	}, [label]);
	useEffect(() => {
		const own = reported.current.lastIndexOf(value);
		reported.current = reported.current.slice(own + 1);
		const editor = view.current;
		if (own >= 0 || !editor || editor.state.doc.toString() === value) return;
		reported.current = [];
		editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value }, annotations: fromOutside.of(true) });
	}, [value]);
	const known = JSON.stringify(context);
	useEffect(() => {
		view.current?.dispatch({ effects: checks.current.reconfigure(checker(latest)) });
	}, [known]);
	return <div ref={host} class="text-editor" />;
}

/**
 * Replaces what is selected by what is typed. A browser that does so keeps the colour of the old text in a style attribute, which the
 * policy forbids.
 */
function replaceSelection(event: InputEvent, view: EditorView): boolean {
	const { from, to, empty } = view.state.selection.main;
	if (event.inputType !== "insertText" || event.data === null || empty || event.isComposing) return false;
	const text = event.data;
	const typed = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
	event.preventDefault();
	if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, typed))) view.dispatch(typed());
	return true;
}

/** Checks the text when it has not changed for a moment. */
const checker = (latest: { current: { context: Context } }) => linter((view) => check(view, latest.current.context), { delay: 300 });

function runs(onRun: (() => void) | undefined): boolean {
	onRun?.();
	return onRun !== undefined;
}
