import { navigate, pageAddress, place } from "../../router";
import { PageHead, Tabs } from "../../ui/basics";
import { CaptureTab } from "./capture";
import { PersonalTab } from "./personal";
import { SecretTab } from "./secret";

const tabs = [
	{ value: "personal", label: "Personal keys" },
	{ value: "secret", label: "Secret keys" },
	{ value: "capture", label: "Capture token" },
] as const;

type Tab = (typeof tabs)[number]["value"];

/** The keys of the project. */
export default function Page() {
	const asked = new URLSearchParams(place.value.search).get("tab");
	const tab = tabs.find((t) => t.value === asked)?.value ?? "personal";
	const show = (wanted: Tab) => navigate(pageAddress("keys") + (wanted === "personal" ? "" : `?tab=${wanted}`));
	return (
		<>
			<PageHead title="Keys" about="Who may do what with the project. A key is shown once, when it is created or rolled." />
			<Tabs label="Keys" value={tab} choices={tabs} onValue={show}>
				{tab === "personal" && <PersonalTab />}
				{tab === "secret" && <SecretTab />}
				{tab === "capture" && <CaptureTab />}
			</Tabs>
		</>
	);
}
