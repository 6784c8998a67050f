import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { ApiError, messageOf, send } from "./api/client";
import { When } from "./data/time";
import { close, keep, type Kept, open, type Project, type Session, session, sessionEnded, stored } from "./session";
import { Button, Failure, Field, Snippet, TextInput } from "./ui/basics";
import { Dialog } from "./ui/dialog";
import { useHeading } from "./ui/title";

/** What POST /api/console/session/ answers: docs/console.md, "Signing in". */
interface Exchanged {
	key: string;
	expires_at: string;
}

/** The code of the link that opened this page. */
export function codeInAddress(): string | null {
	return new URLSearchParams(window.location.hash.slice(1)).get("code");
}

/** Signs in with the code in the address, or with the key that the tab had before a reload. A server that fails takes neither away. */
export async function resume(): Promise<void> {
	const code = codeInAddress();
	const kept = code ? await exchanged(code) : stored();
	if (!kept) return;
	try {
		await signInWith(kept.key, kept);
	} catch (error) {
		if (!(error instanceof ApiError) || error.status !== 401) throw error;
		close("Your session has ended. Sign in again.");
	}
}

/** The key that a link's code stands for. A code works once: the tab keeps the key before anything else can fail. */
async function exchanged(code: string): Promise<Kept> {
	try {
		const { data } = await send<Exchanged>("POST", "/api/console/session/", { body: { code } });
		const kept = { key: data.key, own: true, expiresAt: data.expires_at };
		keep(kept);
		dropCode();
		return kept;
	} catch (error) {
		if (!canPass(error)) dropCode();
		throw error;
	}
}

/** Takes the code of a link out of the address. */
export function dropCode(): void {
	window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
}

/** Reports whether an error says nothing of the request, so that the same request may succeed later. */
export function canPass(error: unknown): boolean {
	if (!(error instanceof ApiError)) return false;
	return error.status >= 500 || error.status === 429 || error.code === "unreachable" || error.code === "not_json";
}

interface SignInOptions {
	own?: boolean;
	expiresAt?: string;
	/** The organization of the only project whose key is taken. */
	only?: string;
}

/** What a key can ask about itself: docs/saved-insights.md. */
interface KeyRecord {
	label: string;
	scopes: string[];
	scoped_organizations: string[];
}

/** Signs in with a key, if it is a personal key that the server knows. */
export async function signInWith(key: string, { own = false, expiresAt, only }: SignInOptions = {}): Promise<void> {
	const { data: self } = await send<KeyRecord>("GET", "/api/personal_api_keys/@current/", { key });
	const [organization = ""] = self.scoped_organizations;
	if (only !== undefined && organization !== only) throw new Error("This key belongs to another project.");
	const project = await projectOf(key);
	open({ key, label: self.label, scopes: self.scopes, own, expiresAt, organization, project } satisfies Session);
}

/** The project of a key. One without `project:read` may not ask for it, and stays with what addresses say. */
async function projectOf(key: string): Promise<Project> {
	try {
		return (await send<Project>("GET", "/api/projects/@current/", { key })).data;
	} catch (error) {
		if (error instanceof ApiError && error.status === 403) return { id: 0, name: "Project" }; // addresses say @current
		throw error;
	}
}

/** Why the key of a link could not be revoked, so that its session goes on. */
export const notRevoked = signal("");

/** Ends the session. A key that a link made is revoked; if that fails, the session goes on, and `notRevoked` says why. */
export async function signOut(): Promise<void> {
	try {
		if (session.value?.own) await send("DELETE", "/api/personal_api_keys/@current/");
	} catch (error) {
		if (!(error instanceof ApiError) || error.status !== 401) {
			notRevoked.value = messageOf(error);
			return;
		}
	}
	forget();
}

/** Ends the session in this tab alone. */
function forget(): void {
	notRevoked.value = "";
	close();
}

/** Says that signing out failed. */
export function StillSignedIn() {
	const [busy, setBusy] = useState(false);
	const again = async () => {
		setBusy(true);
		await signOut();
		setBusy(false);
	};
	const until = session.value?.expiresAt;
	return (
		<Dialog title="You are still signed in" onClose={() => (notRevoked.value = "")}>
			<div class="form">
				<p class="mistake" role="alert">
					{notRevoked.value}
				</p>
				<p>
					The key of this session was not revoked
					{until && (
						<>
							, and works until <When time={until} />
						</>
					)}
					.
				</p>
				<footer class="dialog-foot">
					<Button onClick={forget}>Sign out without revoking it</Button>
					<Button look="primary" busy={busy} onClick={again}>
						Try again
					</Button>
				</footer>
			</div>
		</Dialog>
	);
}

/** The form that asks for a key. `failed` is why signing in by itself did not work. */
export function SignIn({ failed }: { failed: string }) {
	useHeading("Sign in");
	return (
		<main class="signin">
			<div>
				<h1>Sign in</h1>
				<KeyForm failed={failed} />
			</div>
		</main>
	);
}

/** Says that the server failed while the tab signed in by itself. */
export function Waiting({ error, retry, onOther }: { error: unknown; retry: () => void; onOther: () => void }) {
	const title = "The server has a problem";
	useHeading(title);
	return (
		<main class="signin">
			<div>
				<h1>{title}</h1>
				<div class="form">
					<Failure error={error} retry={retry} />
					<p>{codeInAddress() ? "The link stays in the address." : "You are not signed out: this tab keeps your key."}</p>
					<div>
						<Button onClick={onOther}>Use another key</Button>
					</div>
				</div>
			</div>
		</main>
	);
}

/** The form over a page with something unsaved, when its key no longer works. Who closes it can still read and copy what is there. */
export function SignInAgain() {
	return (
		<Dialog title="Sign in" onClose={() => (sessionEnded.value = "")}>
			<KeyForm failed="" only={session.value?.organization} />
		</Dialog>
	);
}

function KeyForm({ failed, only }: { failed: string; only?: string }) {
	const [key, setKey] = useState("");
	const [wrong, setWrong] = useState(failed);
	const [busy, setBusy] = useState(false);
	const submit = async (event: Event) => {
		event.preventDefault();
		setBusy(true);
		setWrong("");
		try {
			await signInWith(key.trim(), { only });
		} catch (error) {
			setWrong(error instanceof ApiError && error.status === 401 ? "This is not a valid personal key." : messageOf(error));
			setBusy(false);
		}
	};
	return (
		<form class="form" onSubmit={submit}>
			{sessionEnded.value && <p class="notice">{sessionEnded.value}</p>}
			<Field label="Personal key" error={wrong} hint="It begins with phx_. This tab keeps it until you close it or sign out.">
				{(id) => <TextInput id={id} type="password" value={key} onValue={setKey} autocomplete="off" required autofocus />}
			</Field>
			<Button type="submit" look="primary" busy={busy}>
				Sign in
			</Button>
			{only === undefined && (
				<div class="field">
					<p class="hint">Or, on the server, get a link that signs you in:</p>
					<Snippet text="caddy analytics console" label="Command" />
				</div>
			)}
		</form>
	);
}
