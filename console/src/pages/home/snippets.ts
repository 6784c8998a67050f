/** A way to send events, and the code for it. */
export interface CaptureSnippet {
	id: string;
	label: string;
	text: string;
	hint: string;
}

/** How to send the first event to a site with a project's capture token: docs/capture.md. */
export function captureSnippets(token: string, site: string): CaptureSnippet[] {
	const key = JSON.stringify(token);
	const host = JSON.stringify(site);
	return [
		{
			id: "page",
			label: "Web page",
			hint: "Paste this into the pages of your site. Page views and clicks are sent automatically.",
			text: `<script src="https://us-assets.i.posthog.com/static/array.js"></script>\n<script>posthog.init(${key}, { api_host: ${host} })</script>`,
		},
		{
			id: "js",
			label: "posthog-js",
			hint: "For applications with a bundler: npm install posthog-js",
			text: `import posthog from "posthog-js";\n\nposthog.init(${key}, { api_host: ${host} });\nposthog.capture("signed up", { plan: "pro" });`,
		},
		{
			id: "node",
			label: "Node.js",
			hint: "For servers: npm install posthog-node. SDKs of other languages take the same token and address.",
			text: `import { PostHog } from "posthog-node";\n\nconst client = new PostHog(${key}, { host: ${host} });\nclient.capture({ distinctId: "u1", event: "signed up", properties: { plan: "pro" } });\nawait client.shutdown();`,
		},
		{
			id: "curl",
			label: "curl",
			hint: "Sends one event right now.",
			text: `curl ${site}/batch/ -H "Content-Type: application/json" -d '{"api_key": ${key}, "batch": [\n  {"event": "signed up", "distinct_id": "u1", "properties": {"plan": "pro", "$set": {"email": "a@b.c"}}}]}'`,
		},
	];
}
