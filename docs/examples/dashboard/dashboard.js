// Shows the months of a team as bars and a table, one page at a time.
import { Analytics } from "./analytics.js";

const analytics = new Analytics("token");
const monthsOnPage = 12;
const element = (id) => document.getElementById(id);

let cursors = [undefined]; // of the pages from the newest to the current one
let next; // the cursor of the next page
let running; // the AbortController of the current run

// show runs the endpoint for the page of the last cursor, and draws the rows. It aborts a run in progress.
async function show(path) {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  element("board").setAttribute("aria-busy", "true");
  try {
    const answer = await analytics.run("activity", { variables: { since: element("since").value }, limit: monthsOnPage, cursor: path.at(-1) }, signal);
    element("customer").textContent = await analytics.customer();
    cursors = path;
    next = answer.next_cursor;
    drawTable(answer.results);
    drawBars(answer.results);
    element("older").disabled = !next;
    element("newer").disabled = cursors.length === 1;
    say(answer.results.length ? `${month(answer.results.at(-1).month)} – ${month(answer.results[0].month)}` : "No commits in that time.");
  } catch (error) {
    if (signal.aborted) return; // a newer run will draw
    if (error.status === 410 && path.length > 1) return show([undefined]); // the snapshot of the pages is no longer kept
    say(explain(error), "error");
  }
  element("board").setAttribute("aria-busy", "false");
}

function explain(error) {
  if (error instanceof TypeError) return "The API can't be reached from this page."; // the network, or a wrong origin
  if (error.status === 429) return `Too many queries: try again in ${error.retryAfter} seconds.`;
  return error.message;
}

function say(text, kind = "") {
  element("status").textContent = text;
  element("status").className = kind;
}

function drawTable(rows) {
  element("rows").replaceChildren(
    ...rows.map((row) => {
      const line = document.createElement("tr");
      for (const value of [month(row.month), row.commits, row.authors]) line.insertCell().textContent = value;
      return line;
    }),
  );
}

// drawBars draws the bars, the oldest month on the left.
function drawBars(rows) {
  const most = Math.max(...rows.map((row) => row.commits));
  const [width, base, top] = [720 / monthsOnPage, 190, 160]; // of a month, the ground line and the highest bar
  element("chart").replaceChildren(
    ...rows.toReversed().flatMap((row, i) => {
      const height = Math.max(2, (row.commits / most) * top);
      const middle = (i + 0.5) * width;
      return [
        shape("rect", { x: middle - width * 0.35, y: base - height, width: width * 0.7, height, rx: 3 }),
        shape("text", { x: middle, y: base - height - 6, class: "value" }, row.commits),
        shape("text", { x: middle, y: base + 20 }, month(row.month)),
      ];
    }),
  );
}

function shape(name, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// month formats 2026-08-01 as Aug 26.
function month(date) {
  return new Intl.DateTimeFormat("en", { month: "short", year: "2-digit", timeZone: "UTC" }).format(new Date(date));
}

element("older").addEventListener("click", () => show([...cursors, next]));
element("newer").addEventListener("click", () => show(cursors.slice(0, -1)));
element("since").addEventListener("change", () => show([undefined]));
show([undefined]);
