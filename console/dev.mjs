// Serves the console from dist/ with the API of a running server, for working on it: npm run dev -- http://localhost:8080
// Each visit of the page builds it anew.
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { extname, join } from "node:path";

const [server = "http://localhost:8080", port = "5173"] = process.argv.slice(2);
const types = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8" };

/** Headers of the page that matter while working on it: what the server forbids shows up here, too. */
const policy =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

createServer(async (req, res) => {
	const { pathname } = new URL(req.url, "http://localhost");
	if (pathname.startsWith("/console/")) {
		try {
			const file = await readFile(join(import.meta.dirname, "dist", pathname));
			res.writeHead(200, { "Content-Type": types[extname(pathname)] ?? "application/octet-stream" }).end(file);
		} catch {
			res.writeHead(404).end();
		}
		return;
	}
	if (pathname === "/" || pathname.startsWith("/project/")) {
		execFileSync(process.execPath, [join(import.meta.dirname, "build.mjs"), "--fast"], { stdio: "inherit" });
		const page = await readFile(join(import.meta.dirname, "dist/index.html"));
		res.writeHead(200, { "Content-Type": types[".html"], "Content-Security-Policy": policy }).end(page);
		return;
	}
	const to = new URL(req.url, server);
	const headers = { ...req.headers, host: to.host, ...(req.headers.origin && { origin: to.origin }) };
	const forwarded = request(to, { method: req.method, headers }, (answer) => {
		res.writeHead(answer.statusCode, answer.headers);
		answer.pipe(res);
	});
	forwarded.on("error", () => res.writeHead(502).end());
	req.pipe(forwarded);
}).listen(Number(port), "127.0.0.1", () => console.log(`The console is on http://localhost:${port}, with the API of ${server}.`));
