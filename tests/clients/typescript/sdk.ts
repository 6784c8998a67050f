// Calls the server through the client that @hey-api/openapi-ts made, and prints what came.
import { client } from "./sdk/client.gen.js";
import { csvSalesByDay, rowsSalesByDay, runViews } from "./sdk/index.js";
import type { SalesByDayRow } from "./sdk/index.js";

client.setConfig({ baseUrl: process.env.SITE, headers: { Authorization: `Bearer ${process.env.KEY}` } });

const { data, error } = await rowsSalesByDay({ body: { variables: { least: 2, country: ["fr"] }, limit: 2 } });
if (!data) throw new Error(JSON.stringify(error));
const rows: SalesByDayRow[] = data.results;
const days: string[] = rows.map((row) => row.day);
// @ts-expect-error: a day is a text
const numbers: number[] = rows.map((row) => row.day);

const file = await csvSalesByDay({ body: { variables: { least: 3 } } });
const csv: string | undefined = file.data;

const refused = await rowsSalesByDay({ body: { variables: { least: 2 }, limit: 0 } });
const detail: string | undefined = refused.error?.detail;

const views = await runViews({ body: {} });
if (!views.data) throw new Error(JSON.stringify(views.error));

console.log(JSON.stringify({ rows, days, csv, detail, items: views.data.results.map((item) => item.label), numbers: numbers.length }));
