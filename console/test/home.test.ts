import { expect, test } from "vitest";
import { captureSnippets } from "../src/pages/home/snippets";

test("each snippet has the token and the address of this site", () => {
	const all = captureSnippets("phc_x", "https://a.example:8443");
	expect(all.map((s) => s.id)).toEqual(["page", "js", "node", "curl"]);
	for (const s of all) {
		expect(s.text).toContain("phc_x");
		expect(s.text).toContain("https://a.example:8443");
	}
});
