import { useState } from "preact/hooks";
import { session } from "../../session";
import { Card, Empty, Segments, Snippet } from "../../ui/basics";

const languages = [
	{ value: "page", label: "Page" },
	{ value: "node", label: "Node.js" },
	{ value: "curl", label: "curl" },
] as const;

type Language = (typeof languages)[number]["value"];

/** A program that sends an event with a capture token to a site. */
export function captureSnippet(language: Language, token: string, site: string): string {
	switch (language) {
		case "page":
			return [
				`import posthog from "posthog-js";`,
				"",
				`posthog.init(${JSON.stringify(token)}, { api_host: ${JSON.stringify(site)} });`,
			].join("\n");
		case "node":
			return [
				`import { PostHog } from "posthog-node";`,
				"",
				`const client = new PostHog(${JSON.stringify(token)}, { host: ${JSON.stringify(site)} });`,
				`client.capture({ distinctId: "u1", event: "signed up", properties: { plan: "pro" } });`,
				"await client.shutdown();",
			].join("\n");
		case "curl":
			return [
				`curl -sS ${site}/batch/ -H 'Content-Type: application/json' \\`,
				`  -d '${JSON.stringify({ api_key: token, batch: [{ event: "signed up", distinct_id: "u1", properties: { plan: "pro" } }] })}'`,
			].join("\n");
	}
}

/** The token that sends events. */
export function CaptureTab() {
	const [language, setLanguage] = useState<Language>("page");
	const token = session.value?.project.api_token;
	if (!token) return <Empty title="Your key may not see the capture token">It needs the scope project:read.</Empty>;
	return (
		<div class="keys-stack">
			<Card title="Capture token">
				<p class="keys-about">
					It sends events to this project and does nothing else. It is no secret: it is in every page that sends events. As a key of the API
					it gets a 401.
				</p>
				<Snippet label="Capture token" text={token} />
			</Card>
			<Card title="Send events" actions={<Segments label="Program" value={language} choices={languages} onValue={setLanguage} />}>
				<Snippet label="Program that sends an event" text={captureSnippet(language, token, window.location.origin)} />
			</Card>
			<Card title="Rotate it">
				<p class="keys-about">The operator of the server makes a new one, and revokes old ones:</p>
				<Snippet label="Command" text={`caddy analytics project token rotate --project ${session.value?.project.id}`} />
			</Card>
		</div>
	);
}
