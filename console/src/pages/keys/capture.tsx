import { useState } from "preact/hooks";
import { session } from "../../session";
import { Card, Empty, Segments, Snippet } from "../../ui/basics";
import { captureSnippets } from "../home/snippets";

/** The token that sends events. */
export function CaptureTab() {
	const [chosen, setChosen] = useState("page");
	const token = session.value?.project.api_token;
	if (!token) return <Empty title="Your key may not see the capture token">It needs the scope project:read.</Empty>;
	const snippets = captureSnippets(token, window.location.origin);
	const snippet = snippets.find((s) => s.id === chosen) ?? snippets[0];
	const choices = snippets.map((s) => ({ value: s.id, label: s.label }));
	return (
		<div class="keys-stack">
			<Card title="Capture token">
				<p class="keys-about">
					It sends events to this project and does nothing else. It is no secret: it is in every page that sends events. It is not an API
					key: the API refuses it.
				</p>
				<Snippet label="Capture token" text={token} />
			</Card>
			<Card title="Send events" actions={<Segments label="Program" value={chosen} choices={choices} onValue={setChosen} />}>
				{snippet && (
					<>
						<p class="hint">{snippet.hint}</p>
						<Snippet key={snippet.id} label="Program that sends an event" text={snippet.text} />
					</>
				)}
			</Card>
			<Card title="Rotate it">
				<p class="keys-about">The operator of the server creates a new one, and revokes old ones:</p>
				<Snippet label="Command" text={`caddy analytics project token rotate --project ${session.value?.project.id}`} />
			</Card>
		</div>
	);
}
