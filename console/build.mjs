// Builds the console into dist/: index.html, and below console/ its scripts and styles with a hash in their names, each also compressed.
import { mkdir, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import esbuild from "esbuild";

const root = import.meta.dirname;
const dist = join(root, "dist");
const assets = join(dist, "console");

/** Files smaller than this are sent as they are. */
const worthCompressing = 1024;

const options = {
	absWorkingDir: root,
	entryPoints: { main: "src/main.tsx", icon: "src/icon.svg" },
	outdir: assets,
	bundle: true,
	splitting: true,
	format: "esm",
	target: "es2023",
	minify: true,
	metafile: true,
	legalComments: "eof",
	loader: { ".svg": "copy" },
	entryNames: "[name]-[hash]",
	chunkNames: "chunk-[hash]",
	assetNames: "[name]-[hash]",
	jsx: "automatic",
	jsxImportSource: "preact",
	logLevel: "warning",
};

/** Writes the page that names the built files. */
async function writePage(outputs) {
	const built = (entry, extension) => {
		const found = Object.entries(outputs).find(([path, output]) => output.entryPoint === entry && path.endsWith(extension));
		if (!found) throw new Error(`the build has no ${extension} of ${entry}`);
		return found;
	};
	const [script, { cssBundle }] = built("src/main.tsx", ".js");
	const names = { script: basename(script), style: basename(cssBundle), icon: basename(built("src/icon.svg", ".svg")[0]) };
	const template = await readFile(join(root, "src/index.html"), "utf8");
	await writeFile(
		join(dist, "index.html"),
		template.replace(/\{(\w+)\}/g, (_, name) => names[name]),
	);
}

/** Writes each file that compresses well beside itself as .br and .gz. */
async function compress(folder) {
	for (const file of await readdir(folder, { withFileTypes: true })) {
		if (!file.isFile() || !/\.(js|css|html|svg|json)$/.test(file.name)) continue;
		const path = join(folder, file.name);
		const text = await readFile(path);
		if (text.length < worthCompressing) continue;
		const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: text.length } };
		await writeFile(`${path}.br`, await promisify(brotliCompress)(text, brotli));
		await writeFile(`${path}.gz`, await promisify(gzip)(text, { level: 9 }));
	}
}

/** Removes what an earlier build wrote. */
async function clean() {
	await rm(assets, { recursive: true, force: true });
	for (const name of ["index.html", "index.html.br", "index.html.gz"]) await rm(join(dist, name), { force: true });
	await mkdir(assets, { recursive: true });
}

await clean();
const result = await esbuild.build(options);
await writePage(result.metafile.outputs);
if (process.argv.includes("--fast")) {
	await utimes(join(dist, "index.html"), 0, 0); // scripts/console.sh builds it anew, compressed
} else {
	await compress(assets);
	await compress(dist);
}
if (process.argv.includes("--sizes")) console.log(await esbuild.analyzeMetafile(result.metafile));
