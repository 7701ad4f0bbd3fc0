// A running conversation updates by itself: rows and chart follow the server's events.
import { elementsOf, fetchPart } from "./page.js";

const GATHER = 250; // Milliseconds in which events are gathered before rows are fetched.
const NEAR = 120; // Pixels from the end of the page within which a person follows the newest row.

const place = document.querySelector("[data-events-url]");

if (place !== null && "EventSource" in window) start();

function start() {
  const rows = document.getElementById("rows");
  const isNewest = !place.dataset.turn; // A page of an earlier turn stays as it is.
  const state = document.createElement("p");
  state.id = "live";
  state.className = "live soft";
  state.setAttribute("role", "status");
  state.setAttribute("aria-live", "polite");
  (document.getElementById("live-place") ?? place).prepend(state);
  let seen = place.dataset.seen ?? "";
  let source = null;
  let waiting = [];
  let timer = 0;
  let busy = Promise.resolve();

  function tell(text, kind = "") {
    state.textContent = text;
    state.dataset.state = kind;
  }

  function connect() {
    if (source !== null || document.hidden) return;
    source = new EventSource(`${place.dataset.eventsUrl}${place.dataset.eventsUrl.includes("?") ? "&" : "?"}seen=${encodeURIComponent(seen)}`);
    source.addEventListener("message", (event) => {
      seen = event.lastEventId || seen;
      waiting.push(...JSON.parse(event.data));
      clearTimeout(timer);
      timer = setTimeout(() => { busy = busy.then(work, work); }, GATHER);
    });
    source.addEventListener("error", () => {
      if (source?.readyState === EventSource.CLOSED) disconnect(); // The browser does not try again by itself.
    });
  }

  function disconnect() {
    source?.close();
    source = null;
  }

  async function work() {
    const updates = waiting;
    waiting = [];
    if (updates.length === 0) return;
    announce(updates);
    const kinds = new Set(updates.map((update) => update.kind));
    if (kinds.has("gone")) {
      disconnect();
      return;
    }
    if (!isNewest) return;
    if (kinds.has("reload") || updates.some((update) => update.kind === "receipt" && !update.rows?.length)) {
      offerReload(updates);
      return;
    }
    const wanted = [...new Set(updates.flatMap((update) => update.rows ?? []))].sort((a, b) => a - b);
    for (const [first, last] of runs(wanted)) await fetchRows(first, last);
    if (wanted.length > 0) await fetchChart();
  }

  /** Say the newest and most important thing; a count stands for the others. */
  function announce(updates) {
    const rank = { gone: 5, reload: 4, summary: 3, expanded: 2, receipt: 1, message: 0 };
    const main = updates.reduce((best, update) => (rank[update.kind] >= rank[best.kind] ? update : best));
    const rest = updates.length - 1;
    tell(`${main.text}${rest ? `, and ${rest} more` : ""}${isNewest ? "" : ". This page shows an earlier turn."}`, main.state || main.kind);
  }

  function offerReload(updates) {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Load the page again";
    link.addEventListener("click", (event) => { event.preventDefault(); location.reload(); });
    state.textContent = `${updates.find((update) => update.kind === "reload")?.text ?? "The view changed."} `;
    state.append(link);
  }

  /** Put the rows of these positions in their places, new ones at the end. What a person reads does not move. */
  async function fetchRows(first, last) {
    if (rows === null || !rows.dataset.rowsUrl) return;
    const ends = rows.dataset.complete !== "no"; // Whether the newest row is loaded already.
    const end = document.documentElement;
    const follows = end.scrollHeight - end.scrollTop - end.clientHeight < NEAR;
    const url = new URL(rows.dataset.rowsUrl, location.href);
    url.searchParams.set("from", first);
    url.searchParams.set("to", last);
    const found = [...elementsOf(await fetchPart(url)).querySelectorAll("[data-row]")];
    const anchor = topRow();
    const top = anchor?.getBoundingClientRect().top;
    const known = new Map(found.map((row) => [row.id, row]));
    for (let position = first; position <= last; position += 1) { // Rows that the view shows no more.
      const id = `m${position}`;
      if (!known.has(id)) rows.querySelector(`#${id}`)?.remove();
    }
    for (const row of found) {
      const old = rows.querySelector(`#${CSS.escape(row.id)}`);
      row.classList.add("fresh");
      if (old !== null) {
        const hadFocus = old.contains(document.activeElement);
        old.replaceWith(row);
        if (hadFocus) row.focus({ preventScroll: true });
      } else if (ends || rows.children.length === 0) insert(row);
    }
    if (anchor?.isConnected) window.scrollBy(0, anchor.getBoundingClientRect().top - top);
    if (follows) window.scrollTo(0, end.scrollHeight);
  }

  /** Insert a row at its position. */
  function insert(row) {
    const position = Number(row.id.slice(1));
    const after = [...rows.querySelectorAll("[data-row]")].reverse().find((one) => Number(one.id.slice(1)) < position);
    if (after) after.after(row);
    else rows.prepend(row);
  }

  function topRow() {
    return [...(rows?.querySelectorAll("[data-row]") ?? [])].find((row) => row.getBoundingClientRect().bottom > 0) ?? null;
  }

  async function fetchChart() {
    const chart = document.getElementById("chart");
    if (!chart?.dataset.url) return;
    const html = await fetchPart(chart.dataset.url);
    chart.replaceChildren(elementsOf(html));
    chart.dispatchEvent(new CustomEvent("chart-replaced", { bubbles: true }));
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", connect);
  connect();
}

/** Return ascending numbers as runs [first, last]. */
function runs(numbers) {
  const found = [];
  for (const number of numbers) {
    const run = found.at(-1);
    if (run && number <= run[1] + 1) run[1] = number;
    else found.push([number, number]);
  }
  return found;
}
