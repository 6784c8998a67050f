import { X } from "lucide-preact";
import { Combobox, type Suggestion } from "../ui/combobox";
import { useMistake } from "./mistakes";

/** A list of texts: each can be taken out, and others added. */
export function TextList({
	label,
	values,
	onValues,
	suggest,
	placeholder,
	at,
}: {
	label: string;
	values: string[];
	onValues: (values: string[]) => void;
	suggest?: (text: string, signal: AbortSignal) => Promise<Suggestion[]>;
	placeholder?: string;
	/** The place in the query, for mistakes. */
	at?: string;
}) {
	const mistake = useMistake(at);
	return (
		<div class="editor-stack">
			<div class="editor-values">
				{values.map((text, i) => (
					<span key={`${i} ${text}`} class="editor-chip">
						<span>{text}</span>
						<button type="button" aria-label={`Remove ${text}`} onClick={() => onValues(values.filter((_, j) => j !== i))}>
							<X size={12} aria-hidden="true" />
						</button>
					</span>
				))}
				<Combobox
					label={label}
					value=""
					placeholder={placeholder}
					suggest={suggest ?? (async () => [])}
					onValue={(added) => {
						if (added && !values.includes(added)) onValues([...values, added]);
					}}
					free
					many
					keep
				/>
			</div>
			{mistake && (
				<p class="mistake" role="alert">
					{mistake}
				</p>
			)}
		</div>
	);
}
