import { effect } from "@preact/signals";
import { Command, LogOut, Menu as MenuIcon, Moon, Sun } from "lucide-preact";
import type { ComponentType } from "preact";
import { lazy, Suspense } from "preact/compat";
import { useEffect, useErrorBoundary, useRef, useState } from "preact/hooks";
import { messageOf, pending } from "./api/client";
import { navigation, type NavigationItem, type PageRoute, routes } from "./pages";
import { Palette, paletteOpen } from "./palette";
import { leave, Link, match, navigate, ofAnotherProject, pageAddress, place, projectPath } from "./router";
import { can, session, sessionEnded } from "./session";
import { canPass, codeInAddress, dropCode, notRevoked, resume, SignIn, SignInAgain, signOut, StillSignedIn, Waiting } from "./signin";
import { dark, setTheme } from "./theme";
import { Failure, IconButton, Loading, PageHead } from "./ui/basics";
import { Toasts } from "./ui/dialog";
import { documentTitle, heading } from "./ui/title";

/** The console: a form to sign in, or the page that the address names. */
export function App() {
	const [resuming, setResuming] = useState(true);
	const [failed, setFailed] = useState<unknown>();
	const [asking, setAsking] = useState(false);
	const start = () => {
		setResuming(true);
		setFailed(undefined);
		resume()
			.catch(setFailed)
			.finally(() => setResuming(false));
	};
	useEffect(() => {
		start();
		window.addEventListener("hashchange", followLink);
		const stops = [effect(markReady), effect(nameDocument)];
		return () => stops.forEach((stop) => stop());
	}, []);
	if (resuming) return <Loading />;
	const askForKey = () => {
		dropCode();
		setAsking(true);
	};
	if (!session.value && canPass(failed) && !asking) return <Waiting error={failed} retry={start} onOther={askForKey} />;
	return (
		<>
			{session.value ? <Shell /> : <SignIn failed={failed === undefined || asking ? "" : messageOf(failed)} />}
			{session.value && sessionEnded.value && <SignInAgain />}
			{session.value && notRevoked.value && <StillSignedIn />}
			<Toasts />
		</>
	);
}

/** Signs in with a link that is opened where the console is: browsers load nothing then. */
function followLink(): void {
	if (codeInAddress()) window.location.reload();
}

let settling: ReturnType<typeof setTimeout> | undefined;

/** Says in the document whether anything is being loaded, for tests and screen readers. */
function markReady(): void {
	const busy = pending.value > 0;
	clearTimeout(settling);
	if (busy) document.documentElement.dataset.ready = "false";
	else {
		settling = setTimeout(() => {
			document.documentElement.dataset.ready = "true";
		}, 50);
	}
}

/** Gives the document the title of the page that is shown. */
function nameDocument(): void {
	const path = projectPath(place.value.path);
	const section = session.value && navigation.flatMap((group) => group.items).find((item) => isIn(item, path));
	document.title = documentTitle(heading.value, section?.title ?? "");
}

/** Moves the focus to a page that is opened from another one: the keyboard and screen readers go on there. Who writes into a field stays in it. */
function useFocusOnPage(path: string): void {
	const focused = useRef(path);
	useEffect(() => {
		if (focused.current === path) return;
		focused.current = path;
		if (document.activeElement?.closest("input, textarea, select, .text-editor, dialog")) return;
		document.getElementById("main")?.focus({ preventScroll: true });
	}, [path]);
}

/** Whether the navigation is shown over the page, where the window is narrow. Escape closes it, and so does going on elsewhere. */
function useSidebar(): [boolean, (open: boolean) => void] {
	const [open, setOpen] = useState(false);
	useEffect(() => {
		if (!open) return;
		const button = document.activeElement;
		const elsewhere = (event: Event) => {
			if (!(event.target as Element).closest(".sidebar, .topbar button, dialog")) setOpen(false);
		};
		const keys = (event: KeyboardEvent) => {
			if (event.key !== "Escape" || event.defaultPrevented) return;
			setOpen(false);
			if (button instanceof HTMLElement) button.focus();
		};
		document.addEventListener("pointerdown", elsewhere);
		document.addEventListener("focusin", elsewhere);
		document.addEventListener("keydown", keys);
		return () => {
			document.removeEventListener("pointerdown", elsewhere);
			document.removeEventListener("focusin", elsewhere);
			document.removeEventListener("keydown", keys);
		};
	}, [open]);
	return [open, setOpen];
}

function Shell() {
	const [sidebar, setSidebar] = useSidebar();
	const path = projectPath(place.value.path);
	useEffect(() => setSidebar(false), [path]);
	useFocusOnPage(path);
	useEffect(() => {
		if (!place.value.path.startsWith("/project/")) navigate(pageAddress(), { replace: true });
	}, []);
	return (
		<div class="shell">
			<a class="skip" href="#main">
				Skip to the page
			</a>
			<header class="topbar">
				<IconButton label="Navigation" aria-expanded={sidebar} onClick={() => setSidebar(!sidebar)}>
					<MenuIcon size={18} />
				</IconButton>
				<span>{session.value?.project.name}</span>
			</header>
			<Sidebar open={sidebar} path={path} onGo={() => setSidebar(false)} />
			<main class="main" id="main" tabIndex={-1} aria-labelledby="page-title">
				<Page path={path} />
			</main>
			{paletteOpen.value && <Palette />}
		</div>
	);
}

function Sidebar({ open, path, onGo }: { open: boolean; path: string; onGo: () => void }) {
	return (
		<aside class="sidebar" data-open={open} aria-label="Navigation">
			<div class="sidebar-head">
				<span title={session.value?.project.name}>{session.value?.project.name}</span>
			</div>
			<nav aria-label="Main">
				{navigation.map((group) => {
					const items = group.items.filter((item) => !item.scope || can(item.scope));
					if (items.length === 0) return null;
					return (
						<div key={group.title}>
							{group.title && <p class="sidebar-group">{group.title}</p>}
							<ul>
								{items.map((item) => (
									<li key={item.path}>
										<Link
											to={pageAddress(...item.path.split("/").filter(Boolean))}
											aria-current={isIn(item, path) ? "page" : undefined}
											onClick={onGo}
										>
											<item.icon size={16} aria-hidden="true" />
											{item.title}
										</Link>
									</li>
								))}
							</ul>
						</div>
					);
				})}
			</nav>
			<div class="sidebar-foot">
				<IconButton
					label="Go to… (Ctrl K)"
					onClick={() => {
						paletteOpen.value = true;
					}}
				>
					<Command size={16} />
				</IconButton>
				<IconButton label={dark.value ? "Light theme" : "Dark theme"} onClick={() => setTheme(dark.value ? "light" : "dark")}>
					{dark.value ? <Sun size={16} /> : <Moon size={16} />}
				</IconButton>
				<IconButton label="Sign out" onClick={() => leave(signOut)}>
					<LogOut size={16} />
				</IconButton>
			</div>
		</aside>
	);
}

/** Reports whether the page at a path belongs to an entry of the navigation. */
function isIn({ path: own, over }: NavigationItem, path: string): boolean {
	if (own === "") return path === "";
	return [own, over ?? own].some((to) => path === to || path.startsWith(`${to}/`));
}

/** The page of a path. */
function Page({ path }: { path: string }) {
	if (ofAnotherProject(place.value.path)) {
		return (
			<>
				<PageHead title="This address belongs to another project" />
				<p>
					Your key opens <Link to={pageAddress()}>{session.value?.project.name}</Link>.
				</p>
			</>
		);
	}
	for (const route of routes) {
		const values = match(route.pattern, path);
		if (!values) continue;
		if (route.scope && !can(route.scope)) {
			return (
				<>
					<PageHead title="Your key may not see this page" />
					<p>
						It needs the scope <code>{route.scope}</code>.
					</p>
				</>
			);
		}
		return <OpenPage key={path} route={route} values={values} />;
	}
	return (
		<>
			<PageHead title="There is no such page" />
			<p>Choose another one from the navigation.</p>
		</>
	);
}

/** A page, or why it cannot be shown. The navigation stays usable then. */
function OpenPage({ route, values }: { route: PageRoute; values: Record<string, string> }) {
	const [error, reset] = useErrorBoundary((thrown) => reportError(thrown));
	if (error !== undefined) {
		return (
			<>
				<PageHead title="This page cannot be shown" />
				<Failure error={error} retry={error instanceof NotLoaded ? () => window.location.reload() : reset} />
			</>
		);
	}
	const View = viewOf(route);
	return (
		<Suspense fallback={<Loading />}>
			<View {...values} />
		</Suspense>
	);
}

type View = ComponentType<Record<string, string>>;

const loaded = new Map<string, View>();

/** The view of a page. Its code is loaded when it is opened for the first time. */
function viewOf(route: PageRoute): View {
	let view = loaded.get(route.pattern);
	if (!view) {
		view = lazy(() => load(route)) as View;
		loaded.set(route.pattern, view);
	}
	return view;
}

/** The code of a page could not be loaded. Browsers may remember that until the whole console is loaded again. */
class NotLoaded extends Error {}

/** Loads the code of a page. That counts as a request, so that the page is not ready before. */
async function load(route: PageRoute): ReturnType<PageRoute["load"]> {
	pending.value++;
	try {
		return await route.load();
	} catch {
		loaded.delete(route.pattern);
		throw new NotLoaded("The code of this page could not be loaded. The server may be down, or newer than this page.");
	} finally {
		setTimeout(() => pending.value--, 0);
	}
}
