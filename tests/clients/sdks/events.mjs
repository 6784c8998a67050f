// Captures with posthog-node what a shop's server would, and prints what the client was told about flags.
import { PostHog } from "posthog-node";

const client = new PostHog(process.env.TOKEN, { host: process.env.SITE, flushAt: 3, flushInterval: 100, personalApiKey: process.env.PERSONAL_KEY });
client.on("error", (error) => { throw error; });
const loaded = new Promise((resolve, reject) => {
  client.on("localEvaluationFlagsLoaded", resolve);
  setTimeout(() => reject(new Error("the definitions of flags were not loaded")), 20_000).unref();
});

client.capture({ distinctId: "device", event: "opened", properties: { nested: { list: [1, 2.5, "x", null] } } });
client.alias({ distinctId: "ann", alias: "device" });
client.identify({ distinctId: "ann", properties: { $set: { email: "ann@example.com" }, $set_once: { first: "yes" } } });
client.groupIdentify({ groupType: "company", groupKey: "acme", properties: { plan: "pro" } });
client.capture({ distinctId: "ann", event: "ordered", properties: { amount: 12.5, big: 9007199254740993n.toString() }, groups: { company: "acme" } });
client.capture({ distinctId: "nobody", event: "glanced", properties: { $process_person_profile: false } });

const defined = await loaded;
const flags = await client.getAllFlags("ann");
const enabled = await client.isFeatureEnabled("beta", "ann");
await client.shutdown();
console.log(JSON.stringify({ defined, flags, enabled: enabled ?? null }));
