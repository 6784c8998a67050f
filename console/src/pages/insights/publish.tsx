import { useState } from "preact/hooks";
import { post } from "../../api/client";
import { type QueryNode, sourceOf } from "../../api/query";
import { endpointName, endpointNameMistake, endpointVariables, type Insight } from "../../insights/model";
import { navigate, pageAddress } from "../../router";
import { Field, TextArea, TextInput } from "../../ui/basics";
import { FormDialog } from "../../ui/form-dialog";

interface PublishProps {
	query: QueryNode;
	/** What the query is called; the name of the endpoint is made of it. */
	title: string;
	/** The saved insight whose query it is. */
	insight?: Insight;
	onClose: () => void;
}

/** A form that publishes a query as an endpoint, and goes to its page. */
export function PublishDialog({ query, title, insight, onClose }: PublishProps) {
	const [name, setName] = useState(endpointName(title));
	const [description, setDescription] = useState(insight?.description ?? "");
	const variables = endpointVariables(query);
	const mistake = endpointNameMistake(name);
	const publish = async () => {
		if (mistake) throw new Error(mistake);
		const body = { name, description, query: sourceOf(query), ...(insight && { derived_from_insight: insight.short_id }) };
		await post("endpoints/", body);
		navigate(pageAddress("endpoints", name), { sure: true });
	};
	return (
		<FormDialog title="Publish as an endpoint" action="Publish" onSubmit={publish} onClose={onClose}>
			<Field
				label="Name"
				error={mistake}
				hint="Letters, digits, hyphens and underscores. It is in the endpoint's address and cannot change."
			>
				{(id) => <TextInput id={id} value={name} onValue={setName} required />}
			</Field>
			<Field label="Description">{(id) => <TextArea id={id} value={description} onValue={setDescription} />}</Field>
			<div class="field">
				<p class="field-title">Variables</p>
				{variables.length > 0 ? (
					<ul class="tags">
						{variables.map((v) => (
							<li key={v}>
								<code>{v}</code>
							</li>
						))}
					</ul>
				) : (
					<p>None</p>
				)}
				<p class="hint">Callers can set these.</p>
			</div>
		</FormDialog>
	);
}
