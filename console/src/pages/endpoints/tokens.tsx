import { useState } from "preact/hooks";
import { messageOf, send } from "../../api/client";
import { addressOf, curlCommand } from "../../api/curl";
import { stringify } from "../../api/json";
import { When } from "../../data/time";
import { session } from "../../session";
import { Button, Card, Checkbox, Field, Snippet, TextInput } from "../../ui/basics";
import type { TabProps } from "./endpoint";
import { requestOf, runPath } from "./form";
import { runBody, variablesOf } from "./openapi";
import { VariableFields } from "./fields";

interface Token {
	token: string;
	expires_at: string;
}

/** Seconds of a text of minutes; null when no token can live that long. */
export function tokenSeconds(minutes: string): number | null {
	const seconds = Math.round(Number(minutes) * 60);
	return seconds >= 1 && seconds <= 86400 ? seconds : null;
}

/** The body that asks for a token. */
export function tokenRequest(
	endpoint: string,
	wanted: { variables: Record<string, unknown>; seconds: number; origins: string; rate: string },
) {
	const origins = wanted.origins.split(/[\s,]+/).filter(Boolean);
	return {
		endpoints: [endpoint],
		...(Object.keys(wanted.variables).length > 0 && { variables: wanted.variables }),
		expires_in: wanted.seconds,
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
	const unset = variables.some(({ name }) => fixed.includes(name) && given[name] === undefined);
	const seconds = tokenSeconds(minutes);
	const wanted = unset || seconds === null ? null : tokenRequest(endpoint.name, { variables: values, seconds, origins, rate });
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
							{unset && <p class="notice">Give a value to each variable that the token fixes. Defaults are not fixed.</p>}
						</>
					)}
					<div class="endpoints-pair">
						<Field
							label="Minutes"
							hint={seconds === null ? undefined : "At most 1,440."}
							error={seconds === null ? "A number of minutes, at most 1,440" : ""}
						>
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
				{wanted ? (
					<Snippet label="Command that creates a token" text={curlCommand(addressOf("endpoint_tokens/"), wanted)} />
				) : (
					<p class="hint">Complete what the token allows.</p>
				)}
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
		`  body: ${JSON.stringify(stringify(body))},`,
		"});",
		"const { results } = await response.json();",
	].join("\n");
}

/** Creates a token with a secret key that is used for this alone, and kept nowhere. Null is a request that is not complete. */
function Mint({ wanted }: { wanted: ReturnType<typeof tokenRequest> | null }) {
	const [key, setKey] = useState("");
	const [token, setToken] = useState<Token | null>(null);
	const [wrong, setWrong] = useState("");
	const [busy, setBusy] = useState(false);
	const mint = async (event: Event) => {
		event.preventDefault();
		if (!wanted) return;
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
		<Card title="Create one now">
			<form class="form" onSubmit={mint}>
				<Field
					label="Secret key"
					error={wrong}
					hint="It begins with phs_. It is used for this one request, and not kept. Your own key cannot create tokens."
				>
					{(id) => <TextInput id={id} type="password" value={key} onValue={setKey} required />}
				</Field>
				<div class="actions">
					<Button type="submit" busy={busy} disabled={!wanted}>
						Create a token
					</Button>
				</div>
			</form>
			{token && (
				<div class="endpoints-minted">
					<p class="hint">
						It works until <When time={token.expires_at} />.
					</p>
					<Snippet label="Token" text={token.token} />
				</div>
			)}
		</Card>
	);
}
