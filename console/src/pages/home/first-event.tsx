import { useEffect, useState } from "preact/hooks";
import { ApiError, messageOf } from "../../api/client";
import { rows } from "../../api/query";
import { session } from "../../session";
import { Card, PageHead, Snippet, Tabs } from "../../ui/basics";
import { captureSnippets } from "./snippets";

/** The event that shows that capturing works; null while there is none. A forced answer is not one from before the event came. */
export async function findEvent(forced: boolean, signal?: AbortSignal): Promise<string | null> {
	const found = await rows<[string]>("select event from events limit 1", undefined, {
		refresh: forced ? "force_blocking" : "blocking",
		signal,
	});
	return found[0]?.[0] ?? null;
}

/** How often it is looked whether an event has arrived, in milliseconds. */
const every = 2_000;

/** How to send the first event, for a project without any. It calls `onEvent` when one has arrived. */
export function FirstEvent({ onEvent }: { onEvent: (event: string) => void }) {
	const trouble = useFirstEvent(onEvent);
	const token = session.value?.project.api_token ?? "";
	const snippets = captureSnippets(token, window.location.origin);
	const [chosen, setChosen] = useState("page");
	const snippet = snippets.find((s) => s.id === chosen) ?? snippets[0];
	return (
		<>
			<PageHead title="Send the first event" about={`${session.value?.project.name ?? "This project"} has no events yet.`} />
			<Card class="home-first">
				<div class="stack">
					<Tabs
						label="Ways to send events"
						value={chosen}
						onValue={setChosen}
						choices={snippets.map((s) => ({ value: s.id, label: s.label }))}
					>
						<div class="stack">
							{snippet && token && (
								<>
									<p>{snippet.hint}</p>
									<Snippet key={snippet.id} text={snippet.text} label={snippet.label} />
								</>
							)}
							{!token && (
								<p class="notice">
									Your key may not see the capture token. On the server,{" "}
									<code>{`caddy analytics project token show --project ${session.value?.project.id}`}</code> prints it.
								</p>
							)}
						</div>
					</Tabs>
					<p class="home-waiting" role="status">
						<span class="home-pulse" aria-hidden="true" />
						{trouble || "Waiting for the first event. This page continues when it arrives."}
					</p>
				</div>
			</Card>
		</>
	);
}

/** Looks for an event again and again, as long as the page is shown. Returns what goes wrong with that. */
function useFirstEvent(onEvent: (event: string) => void): string {
	const [trouble, setTrouble] = useState("");
	useEffect(() => {
		const control = new AbortController();
		let timer: ReturnType<typeof setTimeout>;
		const look = async () => {
			let wait = every;
			try {
				const event = document.hidden ? null : await findEvent(true, control.signal);
				if (event !== null) {
					onEvent(event);
					return;
				}
				setTrouble("");
			} catch (error) {
				if (control.signal.aborted) return;
				setTrouble(messageOf(error));
				if (error instanceof ApiError && error.retryAfter) wait = error.retryAfter * 1000;
			}
			timer = setTimeout(look, wait);
		};
		timer = setTimeout(look, 200);
		return () => {
			clearTimeout(timer);
			control.abort();
		};
	}, []);
	return trouble;
}
