import { curlCommand, keyVariable, quoteShell } from "../../api/curl";
import { rounded, stringify } from "../../api/json";

/** A run that a snippet shows. */
export interface Call {
	/** The whole address. */
	url: string;
	body: unknown;
	/** "arrays", "objects", "csv", "ndjson", "parquet" or "arrow". */
	format: string;
	/** The name of the file that formats other than JSON are written to. */
	file: string;
}

export type Language = "curl" | "typescript" | "python" | "go";

/** A program or command that runs an endpoint as it stands, with the key in the environment. */
export function snippet(language: Language, call: Call): string {
	return { curl, typescript, python, go }[language](call);
}

const isJSON = (format: string) => format === "arrays" || format === "objects";
const isText = (format: string) => isJSON(format) || format === "csv" || format === "ndjson";

function curl({ url, body, format, file }: Call): string {
	return curlCommand(url, body, { more: isText(format) ? "" : ` -o ${quoteShell(file)}` });
}

/** A text as a literal of JavaScript. What ends a line in some of its versions is escaped. */
function quoteJS(value: unknown, indent?: string): string {
	return JSON.stringify(value, null, indent).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

/** The text of a body as an expression of JavaScript; a literal where an object could not hold its numbers. */
function bodyJS(body: unknown): string {
	const text = stringify(body);
	return text === stringify(rounded(body)) ? `JSON.stringify(${indented(quoteJS(body, "  "), "  ")})` : quoteJS(text);
}

/** Indents the lines after the first one. */
const indented = (text: string, indent: string) => text.replaceAll("\n", `\n${indent}`);

function typescript({ url, body, format, file }: Call): string {
	const lines = [
		...(isText(format) ? [] : [`import { writeFile } from "node:fs/promises";`, ""]),
		`const response = await fetch(${quoteJS(url)}, {`,
		`  method: "POST",`,
		"  headers: {",
		`    Authorization: \`Bearer \${process.env.${keyVariable}}\`,`,
		`    "Content-Type": "application/json",`,
		"  },",
		`  body: ${bodyJS(body)},`,
		"});",
		"if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);",
	];
	if (isJSON(format)) {
		const type = format === "arrays" ? "unknown[]" : "Record<string, unknown>[]";
		lines.push(`const { results } = (await response.json()) as { results: ${type} };`, "console.log(results);");
	} else if (isText(format)) lines.push("console.log(await response.text());");
	else lines.push(`await writeFile(${quoteJS(file)}, new Uint8Array(await response.arrayBuffer()));`);
	lines.push("", "export {};");
	return lines.join("\n");
}

/** A value of JSON as a literal of Python. */
export function pythonLiteral(value: unknown): string {
	if (value === null || value === undefined) return "None";
	if (value === true) return "True";
	if (value === false) return "False";
	if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
	if (typeof value === "object") {
		const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${pythonLiteral(member)}`);
		return `{${members.join(", ")}}`;
	}
	return stringify(value);
}

function python({ url, body, format, file }: Call): string {
	const lines = [
		"import json",
		"import os",
		"import urllib.request",
		"",
		"request = urllib.request.Request(",
		`    ${JSON.stringify(url)},`,
		`    data=json.dumps(${pythonLiteral(body)}).encode(),`,
		"    headers={",
		`        "Authorization": "Bearer " + os.environ["${keyVariable}"],`,
		`        "Content-Type": "application/json",`,
		"    },",
		")",
		"with urllib.request.urlopen(request) as response:",
	];
	if (isJSON(format)) lines.push(`    print(json.load(response)["results"])`);
	else if (isText(format)) lines.push("    print(response.read().decode())");
	else lines.push(`    with open(${JSON.stringify(file)}, "wb") as file:`, "        file.write(response.read())");
	return lines.join("\n");
}

/** A text as a literal of Go: raw where that is possible. */
export function quoteGo(text: string): string {
	return /[`\r\uFEFF]/.test(text) ? JSON.stringify(text) : `\`${text}\``;
}

function go({ url, body, format, file }: Call): string {
	const imports = ["fmt", "io", "log", "net/http", "os", "strings"].filter((name) => isText(format) || name !== "fmt");
	return [
		"package main",
		"",
		"import (",
		...imports.map((name) => `\t"${name}"`),
		")",
		"",
		"func main() {",
		`\tbody := strings.NewReader(${quoteGo(stringify(body))})`,
		`\treq, err := http.NewRequest(http.MethodPost, ${JSON.stringify(url)}, body)`,
		"\tif err != nil {",
		"\t\tlog.Fatal(err)",
		"\t}",
		`\treq.Header.Set("Authorization", "Bearer "+os.Getenv("${keyVariable}"))`,
		`\treq.Header.Set("Content-Type", "application/json")`,
		"\tresp, err := http.DefaultClient.Do(req)",
		"\tif err != nil {",
		"\t\tlog.Fatal(err)",
		"\t}",
		"\tdefer resp.Body.Close()",
		"\tanswer, err := io.ReadAll(resp.Body)",
		"\tif err != nil {",
		"\t\tlog.Fatal(err)",
		"\t}",
		"\tif resp.StatusCode != http.StatusOK {",
		`\t\tlog.Fatalf("%s: %s", resp.Status, answer)`,
		"\t}",
		isText(format)
			? "\tfmt.Println(string(answer))"
			: `\tif err := os.WriteFile(${JSON.stringify(file)}, answer, 0o644); err != nil {\n\t\tlog.Fatal(err)\n\t}`,
		"}",
	].join("\n");
}
