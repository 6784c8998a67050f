// The dashboard's backend. It serves the page, and exchanges the secret key for tokens that the page can hold. It needs Node
// but no packages:
//
//     SECRET=phs_… node server.mjs
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

const {
  SECRET, // a secret key with the scope endpoint:read
  API = "http://localhost:8080/api/projects/1",
  PORT = "3000",
  ORIGIN = `http://localhost:${PORT}`, // the address of the page in browsers
  TEAM = "tsdb",
} = process.env;

// customerOf returns the signed-in customer. Replace it with a look at your session; never trust what the page sends.
function customerOf(_request) {
  return TEAM;
}

// access returns what the page needs to query its customer's rows.
async function access(customer) {
  const answer = await fetch(`${API}/endpoint_tokens/`, {
    method: "POST",
    headers: { Authorization: `Bearer ${SECRET}`, "Content-Type": "application/json" },
    body: JSON.stringify({ endpoints: ["activity"], variables: { team: customer }, expires_in: 900, origins: [ORIGIN], rate: "60/m" }),
  });
  if (!answer.ok) throw new Error(`no token: ${answer.status} ${await answer.text()}`);
  const { token } = await answer.json();
  return { api: API, customer, token };
}

const files = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/dashboard.css": ["dashboard.css", "text/css; charset=utf-8"],
  "/dashboard.js": ["dashboard.js", "text/javascript; charset=utf-8"],
  "/analytics.js": ["analytics.js", "text/javascript; charset=utf-8"],
};

// The page runs only scripts of this site, and connects only to this site and the API.
const policy = `default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' ${new URL(API).origin}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

async function respond(request, response) {
  const path = request.url.split("?")[0];
  if (path === "/token" && request.method === "POST") {
    const content = JSON.stringify(await access(customerOf(request)));
    response.writeHead(200, { "Content-Type": "application/json", "Cache-Control": "no-store" }).end(content);
    return;
  }
  const file = request.method === "GET" && files[path];
  if (!file) {
    response.writeHead(404).end();
    return;
  }
  const content = await readFile(new URL(file[0], import.meta.url));
  response.writeHead(200, { "Content-Type": file[1], "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff" }).end(content);
}

if (!SECRET) {
  console.error("SECRET must be set to a secret key");
  process.exit(1);
}
createServer((request, response) => {
  respond(request, response).catch((error) => {
    console.error(error.message);
    response.writeHead(502).end(); // the reason is not for the page
  });
}).listen(Number(PORT), "localhost", () => console.log(`${TEAM}'s dashboard is on ${ORIGIN}`));
