import type { ComponentChildren } from "preact";
import { type Block, type Inline, readMarkdown } from "./markdown";

/** A text in Markdown. It is never made HTML: what is read becomes elements of the page. */
export function Markdown({ text }: { text: string }) {
	return <div class="markdown">{readMarkdown(text).map(block)}</div>;
}

function block(b: Block, key: number): ComponentChildren {
	switch (b.kind) {
		case "heading": {
			const Tag = (["h3", "h4", "h5", "h6"] as const)[Math.min(b.level, 4) - 1] ?? "h6";
			return (
				<Tag key={key} class={`markdown-h${Math.min(b.level, 3)}`}>
					{b.parts.map(part)}
				</Tag>
			);
		}
		case "paragraph":
			return <p key={key}>{b.lines.flatMap((line, i) => (i > 0 ? [<br key={`br${i}`} />, ...line.map(part)] : line.map(part)))}</p>;
		case "list": {
			const Tag = b.ordered ? "ol" : "ul";
			return (
				<Tag key={key}>
					{b.items.map((parts, i) => (
						<li key={i}>{parts.map(part)}</li>
					))}
				</Tag>
			);
		}
		case "quote":
			return <blockquote key={key}>{b.blocks.map(block)}</blockquote>;
		case "code":
			return (
				<pre key={key} tabIndex={0} role="group" aria-label="Code">
					<code>{b.text}</code>
				</pre>
			);
		case "rule":
			return <hr key={key} />;
	}
}

function part(p: Inline, key: number): ComponentChildren {
	switch (p.kind) {
		case "text":
			return p.text;
		case "code":
			return <code key={key}>{p.text}</code>;
		case "strong":
			return <strong key={key}>{p.parts.map(part)}</strong>;
		case "emphasis":
			return <em key={key}>{p.parts.map(part)}</em>;
		case "link":
			return (
				<a key={key} href={p.to} target="_blank" rel="noopener noreferrer">
					{p.parts.map(part)}
				</a>
			);
	}
}
