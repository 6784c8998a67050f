import { session } from "../../session";
import { Button, Checkbox, Select } from "../../ui/basics";
import { covers, type Level, levelOf, presets, type ScopeObject, scopeGroups, withLevel } from "./scopes";

/** Asks what a key may do, thing by thing. What the session's key does not have cannot be chosen. */
export function ScopePicker({ scopes, onScopes }: { scopes: string[]; onScopes: (scopes: string[]) => void }) {
	const held = session.value?.scopes ?? [];
	const everything = scopes.includes("*");
	return (
		<fieldset class="keys-picker">
			<legend>What it may do</legend>
			<div class="keys-presets">
				{presets.map((preset) => (
					<Button
						key={preset.name}
						small
						title={preset.about}
						disabled={!preset.scopes.some((scope) => covers(held, scope))}
						onClick={() => onScopes(preset.scopes.filter((scope) => covers(held, scope)))}
					>
						{preset.name}
					</Button>
				))}
			</div>
			{held.includes("*") && (
				<Checkbox label="Everything, also what is added later" checked={everything} onValue={(on) => onScopes(on ? ["*"] : [])} />
			)}
			{!everything &&
				scopeGroups.map((group) => (
					<section key={group.title} aria-label={group.title}>
						<h3>{group.title}</h3>
						{group.objects.map((object) => (
							<Row key={object.object} object={object} held={held} scopes={scopes} onScopes={onScopes} />
						))}
					</section>
				))}
		</fieldset>
	);
}

function Row({
	object: { object, title, read, write },
	held,
	scopes,
	onScopes,
}: {
	object: ScopeObject;
	held: string[];
	scopes: string[];
	onScopes: (scopes: string[]) => void;
}) {
	const level = levelOf(scopes, object);
	const choices = [
		{ value: "none" as const, label: "Nothing" },
		{ value: "read" as const, label: "Read", disabled: !covers(held, `${object}:read`) },
		...(write || level === "write"
			? [{ value: "write" as const, label: "Read and write", disabled: !covers(held, `${object}:write`) }]
			: []),
	];
	return (
		<div class="keys-row">
			<span>{title}</span>
			<Select<Level> aria-label={title} value={level} choices={choices} onValue={(wanted) => onScopes(withLevel(scopes, object, wanted))} />
			<span class="hint">{level === "write" && write ? write : read}</span>
		</div>
	);
}
