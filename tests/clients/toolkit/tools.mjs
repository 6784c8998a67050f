// Calls the server through the tools of PostHog's agent toolkit, and prints what each made of it: the answer, or the mistake.
import { PostHogAgentToolkit } from "@posthog/agent-toolkit/tools";

const kit = new PostHogAgentToolkit({ posthogApiToken: process.env.KEY, posthogApiBaseUrl: process.env.SITE });
const context = kit.getContext();
const tools = new Map((await kit.getTools()).map((tool) => [tool.name, tool]));
const answers = {};

async function use(name, params, as = name) {
  try {
    const tool = tools.get(name);
    const text = (await tool.handler(context, tool.schema.parse(params))).content[0].text;
    try {
      answers[as] = JSON.parse(text);
    } catch {
      answers[as] = text;
    }
  } catch (mistake) {
    answers[as] = { mistake: mistake.message };
  }
  return answers[as];
}

await use("organizations-get", {});
const organization = await use("organization-details-get", {});
await use("switch-organization", { orgId: organization.id });
const [project] = await use("projects-get", {});
await use("switch-project", { projectId: project.id });
await use("event-definitions-list", {});
await use("properties-list", { type: "event", eventName: "$pageview" });

const dateRange = { date_from: "2024-03-01", date_to: "2024-03-03" };
const series = [{ kind: "EventsNode", event: "$pageview", custom_name: "Views", math: "total" }];
const filters = { dateRange, properties: [], filterTestAccounts: false };
const trends = { kind: "InsightVizNode", source: { kind: "TrendsQuery", series, interval: "day", ...filters } };
const funnel = { kind: "InsightVizNode", source: { kind: "FunnelsQuery", series: [...series, ...series], ...filters } };
const sql = {
  kind: "DataVisualizationNode",
  source: { kind: "HogQLQuery", query: "select event, count() from events where {filters} group by event", filters: { dateRange: { date_from: "2024-03-02", date_to: null } } },
};
await use("query-run", { query: trends }, "trends");
await use("query-run", { query: funnel }, "funnel");
await use("query-run", { query: sql }, "sql");
await use("query-run", { query: { ...sql, source: { ...sql.source, query: "select nothing from nowhere" } } }, "mistake");

const { short_id: insightId } = await use("insight-create-from-query", { data: { name: "Views", description: "by day", query: trends, favorited: true, tags: ["web"] } });
await use("insights-get-all", { data: { search: "views", limit: 5 } });
await use("insight-get", { insightId });
await use("insight-query", { insightId });
await use("insight-update", { insightId, data: { name: "Counts", query: sql, favorited: false } });
const { id: dashboardId } = await use("dashboard-create", { data: { name: "Board", description: "all of it", pinned: false, tags: ["mcp"] } });
await use("add-insight-to-dashboard", { data: { insightId, dashboardId } });
await use("dashboard-get", { dashboardId });
await use("dashboard-update", { dashboardId, data: { name: "Other board", pinned: true } });
await use("dashboards-get-all", { data: { search: "other" } });
await use("dashboard-delete", { dashboardId });
await use("insight-delete", { insightId });
await use("insight-get", { insightId }, "gone");
console.log(JSON.stringify(answers));
