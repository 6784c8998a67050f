import { useState } from "preact/hooks";
import { get } from "../../api/client";
import { type Resource, useResource } from "../../api/use";
import { LoadedPage } from "../../data/page";
import { navigate, pageAddress, place } from "../../router";
import { kindName } from "../../insights/model";
import { can } from "../../session";
import { Badge, Button, type Choice, Loaded, Loading, PageHead, Tabs } from "../../ui/basics";
import { attempt } from "../../ui/dialog";
import { counted, number } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { changeEndpoint, type Endpoint, pathOf, readWithVersions, type Version, type WholeUsage, withAnswer } from "./api";
import { emptyForm, type RunForm } from "./form";
import { DeleteEndpoint, milliseconds, share, State } from "./list";
import { MaterializationTab } from "./materialization";
import type { OpenApi } from "./openapi";
import { OpenApiTab } from "./openapi-view";
import { RunsTab } from "./runs";
import { SettingsTab } from "./settings";
import { TokensTab } from "./tokens";
import { TryTab } from "./try";
import { UsageTab } from "./usage";
import { UseTab } from "./use";
import { VersionsTab } from "./versions";

const tabs = [
	{ value: "try", label: "Try it" },
	{ value: "use", label: "Use" },
	{ value: "versions", label: "Versions" },
	{ value: "materialization", label: "Materialization" },
	{ value: "usage", label: "Usage" },
	{ value: "runs", label: "Runs" },
	{ value: "tokens", label: "Tokens for browsers" },
	{ value: "openapi", label: "OpenAPI" },
	{ value: "settings", label: "Settings" },
] as const satisfies readonly Choice<string>[];

type Tab = (typeof tabs)[number]["value"];

/** The tabs that show nothing without the OpenAPI document. */
const needsDocument: ReadonlySet<Tab> = new Set(["try", "use", "tokens", "openapi"]);

/** What each tab is given. */
export interface TabProps {
	endpoint: Endpoint;
	versions: Version[];
	/** The description of the version that the form runs; null while it is not there. */
	document: OpenApi | null;
	usage: Resource<WholeUsage>;
	form: RunForm;
	setForm: (change: Partial<RunForm>) => void;
	/** Loads the endpoint again after a change. */
	reload: () => void;
	/** Shows the answer to a change of the endpoint, or of one of its versions. */
	changed: (answer: Endpoint | Version) => void;
}

/** The page of one endpoint. */
export default function Page({ name }: { name: string }) {
	const endpoint = useResource((signal) => readWithVersions(name, signal), [name]);
	return (
		<LoadedPage of={endpoint} title={name}>
			{({ record, versions }) => (
				<EndpointPage
					endpoint={record}
					versions={versions}
					reload={endpoint.reload}
					changed={(answer) => endpoint.set(withAnswer(record, versions, answer))}
				/>
			)}
		</LoadedPage>
	);
}

function EndpointPage({ endpoint, versions, reload, changed }: Pick<TabProps, "endpoint" | "versions" | "reload" | "changed">) {
	const asked = new URLSearchParams(place.value.search).get("tab");
	const tab = tabs.find((t) => t.value === asked)?.value ?? "try";
	const [form, setForm] = useState<RunForm>(emptyForm);
	const [deleting, setDeleting] = useState(false);
	const document = useResource(
		(signal) => get<OpenApi>(pathOf(endpoint.name, "openapi.json"), { version: form.version }, signal),
		[endpoint.name, endpoint.current_version, endpoint.updated_at, form.version],
	);
	const usage = useResource((signal) => get<WholeUsage>(pathOf(endpoint.name, "usage/"), {}, signal), [endpoint.name]);
	const show = (wanted: Tab) => navigate(pageAddress("endpoints", endpoint.name) + (wanted === "try" ? "" : `?tab=${wanted}`));
	const props: TabProps = {
		endpoint,
		versions,
		document: document.data ?? null,
		usage,
		form,
		setForm: (change) => setForm((before) => ({ ...before, ...change })),
		reload,
		changed,
	};
	const setActive = async (active: boolean) => {
		if (
			await attempt(
				() => changeEndpoint(endpoint.name, { is_active: active }),
				active ? "It can be run again" : "It cannot be run any more",
			)
		)
			reload();
	};
	return (
		<>
			<PageHead title={endpoint.name} about={endpoint.description || undefined}>
				<Menu
					label="More"
					items={[
						{
							label: endpoint.is_active ? "Deactivate" : "Activate",
							disabled: !can("endpoint:write"),
							onSelect: () => setActive(!endpoint.is_active),
						},
						{ label: "Delete…", danger: true, disabled: !can("endpoint:write"), onSelect: () => setDeleting(true) },
					]}
				/>
			</PageHead>
			<p class="endpoints-summary">
				<State endpoint={endpoint} />
				<Badge>{kindName(endpoint.query)}</Badge>
				<Badge>v{endpoint.current_version}</Badge>
				<UsageLine usage={usage} />
			</p>
			<ChangedSince endpoint={endpoint} />
			<Tabs label="Endpoint" value={tab} choices={tabs} onValue={show}>
				{document.error !== undefined && needsDocument.has(tab) ? (
					<Loaded of={document}>{() => null}</Loaded>
				) : (
					<TabOf tab={tab} {...props} />
				)}
			</Tabs>
			{deleting && (
				<DeleteEndpoint endpoint={endpoint} onClose={() => setDeleting(false)} onDeleted={() => navigate(pageAddress("endpoints"))} />
			)}
		</>
	);
}

function TabOf({ tab, ...props }: TabProps & { tab: Tab }) {
	if (!props.document && needsDocument.has(tab)) return <Loading />;
	switch (tab) {
		case "try":
			return <TryTab {...props} />;
		case "use":
			return <UseTab {...props} />;
		case "versions":
			return <VersionsTab {...props} />;
		case "materialization":
			return <MaterializationTab {...props} />;
		case "usage":
			return <UsageTab {...props} />;
		case "runs":
			return <RunsTab {...props} />;
		case "tokens":
			return <TokensTab {...props} />;
		case "openapi":
			return <OpenApiTab {...props} />;
		case "settings":
			return <SettingsTab key={props.endpoint.name} {...props} />;
	}
}

/** The numbers of the last day. */
function UsageLine({ usage }: { usage: Resource<WholeUsage> }) {
	if (!usage.data) return null;
	const { day } = usage.data;
	if (day.calls === 0) {
		return (
			<span class="hint">
				No calls in the last day <ButtonReload onClick={usage.reload} />
			</span>
		);
	}
	return (
		<span class="hint">
			{counted(day.calls, "call")} in the last day, {share(day.cache_hit_ratio)} from the cache, p95 {milliseconds(day.p95_ms)},{" "}
			{counted(day.errors, "error")}
			{day.rate_limited > 0 && `, ${number(day.rate_limited)} over a limit`} <ButtonReload onClick={usage.reload} />
		</span>
	);
}

function ButtonReload({ onClick }: { onClick: () => void }) {
	return (
		<Button look="quiet" small onClick={onClick}>
			Refresh
		</Button>
	);
}

/** What has changed under a query since it was published: an action or a cohort that it uses. */
function ChangedSince({ endpoint: { changes } }: { endpoint: Endpoint }) {
	const found = [...(changes?.breaking ?? []), ...(changes?.compatible ?? [])];
	if (found.length === 0) return null;
	return (
		<div class="notice">
			<p>Since this version was published:</p>
			<ul class="endpoints-points">
				{found.map((change) => (
					<li key={change.code + change.name}>{change.detail}</li>
				))}
			</ul>
		</div>
	);
}
