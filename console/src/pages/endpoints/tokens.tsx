import { useState } from "preact/hooks";
import { messageOf, send } from "../../api/client";
import { addressOf, curlCommand } from "../../api/curl";
import { session } from "../../session";
import { Button, Card, Checkbox, Field, Snippet, TextInput } from "../../ui/basics";
import type { TabProps } from "./endpoint";
import { requestOf, runPath } from "./form";
import { runBody, variablesOf } from "./openapi";
import { when } from "./api";
import { VariableFields } from "./fields";

interface Token {
	token: string;
	expires_at: string;
}

/** The body that asks for a token. */
export function tokenRequest(
	endpoint: string,
	wanted: { variables: Record<string, unknown>; minutes: string; origins: string; rate: string },
) {
	const minutes = Number(wanted.minutes);
	const origins = wanted.origins
		.split(/[\s,]+/)
		.map((origin) => origin.trim())
		.filter(Boolean);
	return {
		endpoints: [endpoint],
		...(Object.keys(wanted.variables).length > 0 && { variables: wanted.variables }),
		expires_in: Number.isFinite(minutes) && minutes > 0 ? Math.round(minutes * 60) : 900,
		...(origins.length > 0 && { origins }),
		...(wanted.rate.trim() && { rate: wanted.rate.trim() }),
	};
}

/** How a page in a browser runs the endpoint, and a form that makes a token to try it with. */
export function TokensTab({ endpoint, document, form, setForm }: TabProps) {
	const variables = document ? variablesOf(document) : [];
	const [fixed, setFixed] = useState<string[]>([]);
	const [minutes, setMinutes] = useState("15");
	const [origins, setOrigins] = useState(window.location.origin);
	const [rate, setRate] = useState("60/m");
	const { body, mistakes } = requestOf(form, variables, false);
	const given = (body.variables ?? {}) as Record<string, unknown>;
	const values = Object.fromEntries(Object.entries(given).filter(([name]) => fixed.includes(name)));
	const wanted = tokenRequest(endpoint.name, { variables: values, minutes, origins, rate });
	const paged = document ? runBody(document)?.properties?.limit !== undefined : false;
	const rest = Object.fromEntries(Object.entries(given).filter(([name]) => !fixed.includes(name)));
	const run = { ...(Object.keys(rest).length > 0 && { variables: rest }), ...(paged && { limit: 100 }) };
	return (
		<div class="endpoints-stack">
			<Card title="How it works">
				<ol class="endpoints-steps">
					<li>Your backend has a secret key that can run this endpoint. Pages never see it.</li>
					<li>When a page asks for a token, the backend exchanges the key for one, for the customer who is signed in.</li>
					<li>The page runs the endpoint with the token, for some minutes, from its own site, with the values that the token fixes.</li>
				</ol>
				<p class="hint">A token is signed but not encrypted: its holder can read the values in it, and cannot change them.</p>
			</Card>
			<Card title="What the token allows">
				<div class="form">
					{variables.length > 0 && (
						<>
							<VariableFields variables={variables} form={form} setForm={setForm} mistakes={mistakes} />
							<fieldset class="endpoints-choices" aria-label="Fixed by the token">
								{variables.map(({ name }) => (
									<Checkbox
										key={name}
										label={`The token fixes ${name}`}
										checked={fixed.includes(name)}
										onValue={(on) => setFixed(on ? [...fixed, name] : fixed.filter((f) => f !== name))}
									/>
								))}
							</fieldset>
							{fixed.some((name) => given[name] === undefined) && (
								<p class="notice">Give a value to each variable that the token fixes. Defaults are not fixed.</p>
							)}
						</>
					)}
					<div class="endpoints-pair">
						<Field label="Minutes" hint="At most 1,440.">
							{(id) => <TextInput id={id} inputMode="numeric" value={minutes} onValue={setMinutes} />}
						</Field>
						<Field label="Rate" hint="Queries that it may cause, such as 60/m.">
							{(id) => <TextInput id={id} value={rate} onValue={setRate} />}
						</Field>
					</div>
					<Field label="Sites" hint="Where pages may use it, such as https://app.example.com.">
						{(id) => <TextInput id={id} value={origins} onValue={setOrigins} />}
					</Field>
				</div>
			</Card>
			<Card title="In the backend">
				<Snippet label="Command that makes a token" text={curlCommand(addressOf("endpoint_tokens/"), wanted)} />
			</Card>
			<Card title="In the page">
				<Snippet
					label="Script of the page"
					text={pageScript(addressOf(runPath(endpoint.name, { format: paged ? "objects" : "arrays", exact: false })), run)}
				/>
			</Card>
			<Mint wanted={wanted} />
		</div>
	);
}

function pageScript(url: string, body: unknown): string {
	return [
		`const { token } = await (await fetch("/token")).json(); // your backend's route`,
		`const response = await fetch(${JSON.stringify(url)}, {`,
		`  method: "POST",`,
		'  headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },',
		`  body: ${JSON.stringify(JSON.stringify(body))},`,
		"});",
		"const { results } = await response.json();",
	].join("\n");
}

/** Makes a token with a secret key that is used for this alone, and kept nowhere. */
function Mint({ wanted }: { wanted: unknown }) {
	const [key, setKey] = useState("");
	const [token, setToken] = useState<Token | null>(null);
	const [wrong, setWrong] = useState("");
	const [busy, setBusy] = useState(false);
	const mint = async (event: Event) => {
		event.preventDefault();
		setBusy(true);
		setWrong("");
		setToken(null);
		try {
			const { data } = await send<Token>("POST", `/api/projects/${session.value?.project.id || "@current"}/endpoint_tokens/`, {
				body: wanted,
				key: key.trim(),
			});
			setToken(data);
		} catch (error) {
			setWrong(messageOf(error));
		} finally {
			setKey("");
			setBusy(false);
		}
	};
	return (
		<Card title="Make one now">
			<form class="form" onSubmit={mint}>
				<Field
					label="Secret key"
					error={wrong}
					hint="It begins with phs_. It is used for this one request, and not kept. Your own key cannot make tokens."
				>
					{(id) => <TextInput id={id} type="password" value={key} onValue={setKey} required />}
				</Field>
				<div class="actions">
					<Button type="submit" busy={busy}>
						Make a token
					</Button>
				</div>
			</form>
			{token && (
				<div class="endpoints-minted">
					<p class="hint">It works until {when(token.expires_at)}.</p>
					<Snippet label="Token" text={token.token} />
				</div>
			)}
		</Card>
	);
}
