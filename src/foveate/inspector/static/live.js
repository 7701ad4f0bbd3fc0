// A running conversation updates by itself: rows and chart follow the server's events.
import { elementsOf, fetchPart } from "./page.js";

const GATHER = 250; // Milliseconds in which events are gathered before rows are fetched.
const MOST_ROWS = 150; // Rows that are fetched at once.
const NEWEST = 1e9; // Position of a message after all others.
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
  let again = 0;
  let failures = 0; // Attempts to connect since the last event stream.
  let busy = Promise.resolve();
  let missing = Infinity; // The first position that came while the end of the list was not loaded.
  let past = ""; // Why the rows of this page are of another past, until it is loaded again.

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
      timer = setTimeout(() => { busy = busy.then(work).catch((error) => tell(error.message, "failed")); }, GATHER);
    });
    source.addEventListener("open", () => {
      if (failures && state.dataset.state === "failed") tell("The page updates again.", "done");
      failures = 0;
    });
    source.addEventListener("error", async () => {
      failures += 1;
      const isRefused = source?.readyState === EventSource.CLOSED; // The browser does not try again by itself.
      if (isRefused) disconnect();
      if (isRefused) again = setTimeout(connect, Math.min(30, 2 ** failures) * 1_000);
      if (!isRefused && failures < 2) return;
      const why = await reason();
      if (failures) tell(`This page does not update. ${why}`, "failed");
    });
  }

  function disconnect() {
    clearTimeout(again);
    source?.close();
    source = null;
  }

  /** Return why the server sends no events: the browser does not say. */
  async function reason() {
    try {
      await fetchPart(place.dataset.sizesUrl);
      return "The connection was lost; the page tries again.";
    } catch (error) {
      return error instanceof TypeError ? "The inspector does not answer; the page tries again." : error.message;
    }
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
    past ||= updates.find((update) => update.kind === "reload")?.text ?? "";
    if (past) {
      offerReload();
      return;
    }
    const wanted = [...new Set(updates.flatMap((update) => update.rows ?? []))].sort((a, b) => a - b);
    const isWide = updates.some((update) => update.kind === "receipt" && !update.rows?.length);
    if (wanted.length === 0 && !isWide) return;
    if (isWide) await fetchAgain();
    else for (const [first, last] of runs(wanted)) await fetchRows(first, last);
    document.getElementById("chart")?.dispatchEvent(new Event("chart-stale"));
    for (const now of [...elementsOf(await fetchPart(place.dataset.sizesUrl)).children]) document.getElementById(now.id)?.replaceWith(now);
  }

  /** Say the newest and most important thing; a count stands for the others. */
  function announce(updates) {
    const rank = { gone: 5, reload: 4, store: 3.5, summary: 3, expanded: 2, receipt: 1, message: 0 };
    const main = updates.reduce((best, update) => (rank[update.kind] >= rank[best.kind] ? update : best));
    const rest = updates.length - 1;
    tell(`${main.text}${rest ? `, and ${rest} more` : ""}${isNewest ? "" : ". This page shows an earlier turn."}`, main.state || main.kind);
  }

  function offerReload() {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Load the page again";
    link.addEventListener("click", (event) => { event.preventDefault(); location.reload(); });
    state.textContent = `${past} `;
    state.append(link);
  }

  const isAtBottom = () => document.documentElement.scrollHeight - window.scrollY - window.innerHeight < NEAR;
  const inSight = (row) => row.getBoundingClientRect().bottom > 0;

  /** Fetch the rows near the one that a person reads again: an edit changed many, or moved those that are not loaded. */
  async function fetchAgain() {
    if (rows === null || !rows.dataset.rowsUrl) return;
    const follows = isAtBottom();
    const old = new Map(shown().map((row) => [row.id, row]));
    const anchor = shown().find(inSight) ?? rows;
    const url = new URL(location.href);
    url.searchParams.delete("at");
    url.searchParams.set("m", follows ? NEWEST : (anchor.dataset.last ?? 1));
    const found = elementsOf(await fetchPart(url)).getElementById("rows");
    const top = anchor.getBoundingClientRect().top;
    const focused = document.activeElement?.closest?.("[data-row]")?.id;
    missing = Infinity;
    Object.assign(rows.dataset, found.dataset);
    rows.replaceChildren(...found.children);
    for (const row of shown()) keepOpen(old.get(row.id), row);
    rows.dispatchEvent(new Event("replaced"));
    const now = document.getElementById(anchor.id) ?? shown().find((row) => spanOf(row)[1] >= Number(anchor.dataset.last));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (follows) shown().at(-1)?.scrollIntoView({ block: "end" }); // The height of the page is an estimate so far.
    else if (now) window.scrollBy(0, now.getBoundingClientRect().top - top);
  }

  /** Open a row as it was, if it still shows the same. */
  function keepOpen(old, row) {
    const text = (one) => one?.querySelector(".body")?.textContent;
    if (text(old) === undefined || text(old) !== text(row)) return;
    if (old.querySelector("details[open]")) row.querySelector("details")?.setAttribute("open", "");
    row.append(...old.querySelectorAll(":scope > .opened"));
  }

  /** Put the rows of these positions in their places. What a person reads does not move. */
  async function fetchRows(first, last) {
    if (rows === null || !rows.dataset.rowsUrl) return;
    for (const [from, to] of openCalls()) {
      if (from > last || to < first - 1) continue;
      first = Math.min(first, from);
      last = Math.max(last, to);
    }
    const url = new URL(rows.dataset.rowsUrl, location.href);
    url.searchParams.set("from", first);
    url.searchParams.set("to", last);
    const found = [...elementsOf(await fetchPart(url)).querySelectorAll("[data-row]")];
    const follows = isAtBottom();
    const spans = [...found.map(spanOf), [first, last]];
    const old = shown().filter((row) => spans.some(([from, to]) => overlaps(spanOf(row), from, to)));
    const anchor = shown().find((row) => !old.includes(row) && inSight(row)) ?? null;
    const top = anchor?.getBoundingClientRect().top;
    const focused = document.activeElement?.closest?.("[data-row]")?.id;
    const hadFocus = old.some((row) => row.id === focused);
    const wasOpen = new Set(old.filter((row) => row.querySelector("details[open]")).map((row) => row.id));
    const isAtEnd = rows.dataset.complete !== "no";
    const newest = Math.max(0, ...shown().map((row) => spanOf(row)[1]));
    const isMoved = old.length !== found.filter((row) => spanOf(row)[0] <= newest).length;
    if (isMoved && rows.querySelector(".chunk.empty")) { // They are fetched by their places, which changed.
      await fetchAgain();
      return;
    }
    let previous = null;
    for (const row of found) {
      if (spanOf(row)[0] > newest && !isAtEnd) { // Its place is not loaded yet; it is fetched with its neighbours.
        missing = Math.min(missing, spanOf(row)[0]);
        continue;
      }
      if (wasOpen.has(row.id)) row.querySelector("details")?.setAttribute("open", "");
      row.classList.add("fresh");
      if (previous) previous.after(row);
      else insert(row, old);
      previous = row;
    }
    for (const row of old) row.remove();
    if (hadFocus) document.getElementById(focused)?.focus({ preventScroll: true });
    if (follows && last > newest) window.scrollTo(0, document.documentElement.scrollHeight);
    else if (anchor?.isConnected) window.scrollBy(0, anchor.getBoundingClientRect().top - top);
  }

  /** Insert a row after the rows before it, but not after those that it replaces. */
  function insert(row, old) {
    const position = spanOf(row)[0];
    const others = shown().filter((one) => !old.includes(one));
    const before = others.findLast((one) => spanOf(one)[0] < position);
    const after = others.find((one) => spanOf(one)[0] > position);
    if (before) before.after(row);
    else if (after) after.before(row);
    else (rows.querySelector(".chunk:not(.empty)") ?? rows).append(row);
  }

  /** Return the positions of each message with calls that have no answer yet, and of its last answer so far. */
  function openCalls() {
    const all = shown();
    return all.flatMap((row, at) => {
      if (!row.classList.contains("is-stand-in")) return [];
      const before = all.slice(0, at).findLast((one) => !one.classList.contains("is-stand-in"));
      return [[spanOf(row)[0], before ? spanOf(before)[1] : 0]];
    });
  }

  const shown = () => [...(rows?.querySelectorAll("[data-row][data-position]") ?? [])];

  /** Fetch what came while the end of the list was not loaded. */
  rows?.addEventListener("rows", () => {
    if (missing === Infinity || rows.dataset.complete === "no") return;
    const first = missing;
    missing = Infinity;
    busy = busy.then(() => fetchRows(first, first + MOST_ROWS)).catch(() => {});
  });

  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", connect);
  connect();
}

/** Return the first and the last position of the messages that a row stands for. */
function spanOf(row) {
  const first = Number(row.dataset.position);
  return [first, Math.max(first, Number(row.dataset.last) || 0)];
}

const overlaps = ([first, last], from, to) => first <= to && from <= last;

/** Return ascending numbers as runs [first, last]. */
function runs(numbers) {
  const found = [];
  for (const number of numbers) {
    const run = found.at(-1);
    if (run && number <= run[1] + 1 && number - run[0] < MOST_ROWS) run[1] = number;
    else found.push([number, number]);
  }
  return found;
}
