import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../../api/client";
import { parse, stringify } from "../../api/json";
import { isNode, type QueryNode } from "../../api/query";
import { same } from "../../insights/model";
import { Field } from "../../ui/basics";

interface JSONEditorProps {
	query: QueryNode;
	onQuery: (query: QueryNode) => void;
	/** Is told whether the text is one that is not taken. */
	onWrong: (wrong: boolean) => void;
	/** The last error of the query. */
	error?: unknown;
}

/** A query as JSON text. What is no query is not taken, and the text stays as it was typed. */
export function JSONEditor({ query, onQuery, onWrong, error }: JSONEditorProps) {
	const [text, setText] = useState(() => stringify(query, 2));
	const [wrong, setWrong] = useState("");
	useEffect(() => {
		if (!same(parsed(text), query)) {
			setText(stringify(query, 2));
			setWrong("");
		}
	}, [query]);
	useEffect(() => onWrong(wrong !== ""), [wrong]);
	useEffect(() => () => onWrong(false), []);
	const edit = (next: string) => {
		setText(next);
		const found = parsed(next);
		setWrong(isNode(found) ? "" : "This is no query: it has to be a JSON object with a kind.");
		if (isNode(found)) onQuery(found);
	};
	return (
		<Field label="Query" error={wrong || (error === undefined ? "" : messageOf(error))}>
			{(id) => (
				<textarea
					id={id}
					class="insight-json"
					spellcheck={false}
					rows={20}
					value={text}
					onInput={(event) => edit(event.currentTarget.value)}
				/>
			)}
		</Field>
	);
}

function parsed(text: string): unknown {
	try {
		return parse(text);
	} catch {
		return null;
	}
}
