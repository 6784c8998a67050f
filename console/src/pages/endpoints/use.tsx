import { useState } from "preact/hooks";
import { addressOf, keyVariable } from "../../api/curl";
import { Link, pageAddress } from "../../router";
import { Card, Segments, Snippet } from "../../ui/basics";
import type { TabProps } from "./endpoint";
import { requestOf, runPath } from "./form";
import { runBody, variablesOf } from "./openapi";
import { type Language, snippet } from "./snippets";
import { formatNames } from "./try";

const languages = [
	{ value: "curl", label: "curl" },
	{ value: "typescript", label: "TypeScript" },
	{ value: "python", label: "Python" },
	{ value: "go", label: "Go" },
] as const;

/** What runs each program. */
const commands: Record<Language, string> = {
	curl: "",
	typescript: "Save it as run.mts, and run it: node run.mts (Node.js 22.18 or newer).",
	python: "Save it as run.py, and run it: python3 run.py. It needs no packages.",
	go: "Save it as run.go, and run it: go run run.go. It needs no modules.",
};

/** Programs that run the endpoint with the values of the form. */
export function UseTab({ endpoint, document, form }: TabProps) {
	const [language, setLanguage] = useState<Language>("curl");
	if (!document) return null;
	const { body, mistakes } = requestOf(form, variablesOf(document), runBody(document)?.properties?.limit !== undefined);
	const call = { url: addressOf(runPath(endpoint.name, form)), body, format: form.format, file: `${endpoint.name}.${form.format}` };
	return (
		<div class="endpoints-stack">
			<Card title="Call it" actions={<Segments label="Language" value={language} choices={languages} onValue={setLanguage} />}>
				<p class="hint">
					It runs as it stands, with the values of <Link to={pageAddress("endpoints", endpoint.name)}>Try it</Link> (
					{formatNames[form.format]}).
				</p>
				{Object.keys(mistakes).length > 0 && <p class="notice">Some values in the form are wrong and are left out.</p>}
				<Snippet label={`Program in ${languages.find((l) => l.value === language)?.label}`} text={snippet(language, call)} />
				{commands[language] && <p class="hint">{commands[language]}</p>}
			</Card>
			<Card title="The key">
				<p>
					Programs read it from the environment. Give a backend a <Link to={`${pageAddress("keys")}?tab=secret`}>secret key</Link>, which
					can only run endpoints, and bind it to this endpoint if it needs no other.
				</p>
				<Snippet label="The key in the environment" text={`export ${keyVariable}=phs_…`} />
			</Card>
			<Card title="From a browser">
				<p>
					A page must not have a key. Its backend exchanges the key for a token that lives for minutes and fixes the variables of one
					customer: <Link to={`${pageAddress("endpoints", endpoint.name)}?tab=tokens`}>Tokens for browsers</Link>.
				</p>
			</Card>
			<Card title="Pages">
				<p>
					A run with <code>limit</code> returns <code>next_cursor</code>. Send <code>{'{"cursor": "…"}'}</code> alone for the next page: all
					pages come from the same rows. In CSV and NDJSON the cursor is in the header <code>Next-Cursor</code>.
				</p>
			</Card>
		</div>
	);
}
