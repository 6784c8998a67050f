// Calls the server through openapi-fetch with the types that openapi-typescript made, and prints what came.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const client = createClient<paths>({
  baseUrl: process.env.SITE,
  headers: { Authorization: `Bearer ${process.env.KEY}` },
});

type Row = components["schemas"]["SalesByDayRow"];

const answer = await client.POST("/api/environments/1/endpoints/sales-by-day/run.objects", {
  body: { variables: { least: 2, country: ["fr"] }, limit: 2 },
});
if (!answer.data) throw new Error(JSON.stringify(answer.error));
const rows: Row[] = answer.data.results;
const amounts: (number | null)[] = rows.map((row) => row.amount);
// @ts-expect-error: a nullable column may be null
const sure: number[] = rows.map((row) => row.amount);
// @ts-expect-error: there is no such column
rows.map((row) => row.amuont);

const arrays = await client.POST("/api/environments/1/endpoints/sales-by-day/run", {
  body: { variables: { least: 2 }, limit: 1 },
});
if (!arrays.data) throw new Error(JSON.stringify(arrays.error));
const cells: (string | number | boolean | null | string[])[][] = arrays.data.results;

const refused = await client.POST("/api/environments/1/endpoints/sales-by-day/run.objects", {
  // @ts-expect-error: a variable without a default has to be given
  body: { variables: {} , limit: 0 },
});
const code: string | undefined = refused.error?.code;

const views = await client.POST("/api/environments/1/endpoints/views/run", { body: {} });
if (!views.data) throw new Error(JSON.stringify(views.error));
const points: (number | null)[][] = views.data.results.map((item) => item.data);

console.log(JSON.stringify({
  rows, amounts, cells, hasMore: answer.data.hasMore, status: refused.response.status, code, points: points.map((p) => p.length),
  sure: sure.length,
}));
