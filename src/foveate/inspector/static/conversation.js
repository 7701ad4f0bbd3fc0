// The page of a conversation: rows that are fetched while one scrolls, details in place, and the timeline.
// Without this script the same links lead to pages.

import { count, elementsOf, fetchPart, say } from "./page.js";

const element = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text ?? "" });
const plain = (event) => !(event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

// ------------------------------------------------------------------------------------------------------------- rows

const KEPT = 40; // chunks that stay in the page
const SETTLED = 70; // milliseconds that a chunk stays near the window before it is fetched

/** Fill the list with empty chunks, and fetch each when it comes near the window. */
function scrollRows(list) {
  const number = (name) => Number(list.dataset[name]);
  const [total, step, span, at] = [number("total"), number("step"), number("span"), number("at")];
  const first = list.querySelector(".chunk");
  if (!first || total <= step) return;
  const begin = Math.floor(at / span) * span;
  const end = Math.min(total, begin + span);
  const height = () => Math.max(44, measured.rows ? measured.pixels / measured.rows : 90);
  const measured = { rows: 0, pixels: 0 };
  const loaded = new Set([first]);
  const waiting = new Map();

  const measure = (chunk) => {
    const rows = chunk.childElementCount;
    if (!rows) return;
    measured.rows += rows;
    measured.pixels += chunk.offsetHeight;
  };
  measure(first);
  const place = (index) => {
    const chunk = element("section", "chunk empty");
    chunk.dataset.at = index;
    chunk.style.height = `${Math.min(step, end - index) * height()}px`;
    return chunk;
  };
  const before = [];
  for (let index = begin; index < at; index += step) before.push(place(index));
  const after = [];
  for (let index = at + step; index < end; index += step) after.push(place(index));
  const top = first.getBoundingClientRect().top;
  list.prepend(...before);
  list.append(...after);
  if (before.length) scrollBy(0, first.getBoundingClientRect().top - top);
  // The rows among which this page scrolls need no links; those before and after them do.
  const lead = (rel, shown, from, to) => {
    const link = document.querySelector(`.seen > nav.pages > a[rel=${rel}]`);
    if (!link) return;
    link.parentElement.hidden = from >= to;
    const url = new URL(link.href);
    url.searchParams.set("at", shown);
    link.href = url;
    link.textContent = `Rows ${count(from + 1)} to ${count(to)} of ${count(total)}`;
  };
  lead("prev", Math.max(0, begin - step), Math.max(0, begin - span), begin);
  lead("next", end, end, Math.min(end + span, total));

  const fetchChunk = async (chunk) => {
    const control = new AbortController();
    waiting.set(chunk, control);
    try {
      const url = new URL(list.dataset.rowsUrl, location.href);
      url.searchParams.set("at", chunk.dataset.at);
      const part = elementsOf(await fetchPart(url, { signal: control.signal }));
      chunk.replaceChildren(part);
      chunk.style.height = "";
      chunk.classList.remove("empty");
      loaded.add(chunk);
      list.dataset.complete = list.lastElementChild.classList.contains("empty") ? "no" : "yes";
      measure(chunk);
      list.dispatchEvent(new CustomEvent("rows", { bubbles: true }));
      forgetFar(chunk);
    } catch (error) {
      if (error.name !== "AbortError") say(error.message);
    } finally {
      waiting.delete(chunk);
    }
  };
  const forgetFar = (near) => {
    if (loaded.size <= KEPT) return;
    const distance = (chunk) => Math.abs(Number(chunk.dataset.at) - Number(near.dataset.at));
    const far = [...loaded].filter((chunk) => !chunk.contains(document.activeElement)).sort((a, b) => distance(b) - distance(a));
    for (const chunk of far.slice(0, loaded.size - KEPT)) {
      chunk.style.height = `${chunk.offsetHeight}px`;
      chunk.replaceChildren();
      chunk.classList.add("empty");
      loaded.delete(chunk);
    }
  };
  const observer = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) {
      clearTimeout(target.timer);
      if (!isIntersecting) waiting.get(target)?.abort();
      else if (target.classList.contains("empty") && !waiting.has(target)) target.timer = setTimeout(() => fetchChunk(target), SETTLED);
    }
  }, { rootMargin: "1200px 0px" });
  for (const chunk of list.children) observer.observe(chunk);
}

const rows = document.getElementById("rows");
if (rows) scrollRows(rows);
rows?.addEventListener("replaced", () => scrollRows(rows)); // By live.js, with other rows.

// ---------------------------------------------------------------------------------------------------------- details

/** Open everything about a row, or the messages that it stands for, below it. A second click closes it. */
document.addEventListener("click", async (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[data-detail], a[data-covered]") : null;
  const row = link?.closest(".row, .covered");
  if (!link || !row || !plain(event)) return;
  event.preventDefault();
  const kind = link.hasAttribute("data-covered") ? "covered" : "detail";
  const known = [...row.children].find((child) => child.dataset.from === link.href);
  if (known) {
    known.remove();
    link.setAttribute("aria-expanded", "false");
    return;
  }
  if (link.ariaBusy === "true") return;
  link.ariaBusy = "true";
  try {
    const place = element("div", `opened ${kind}-place`);
    place.dataset.from = link.href;
    place.append(elementsOf(await fetchPart(link.href)));
    if (row.classList.contains("covered")) link.closest(".more").replaceWith(place);
    else row.append(place);
    place.scrollIntoView({ block: "nearest" }); // A long row ends below the window.
    link.setAttribute("aria-expanded", "true");
  } catch (error) {
    say(error.message);
  } finally {
    link.ariaBusy = "false";
  }
});

// --------------------------------------------------------------------------------------------------------- timeline

/** Draw the box at the pointer, choose a call, and zoom by drawing a range. */
function useTimeline(figure) {
  const data = JSON.parse(figure.dataset.figures);
  const names = JSON.parse(figure.dataset.names);
  const width = Number(figure.dataset.width);
  const plot = figure.querySelector(".plot.tokens");
  const plots = figure.querySelector(".plots");
  const box = plots.appendChild(element("div", "tip"));
  const hair = plots.appendChild(element("div", "hair"));
  const brush = plots.appendChild(element("div", "brush"));
  box.setAttribute("role", "status");
  let start = null;
  let chosen = data.turn.indexOf(Number(new URLSearchParams(location.search).get("turn") ?? 0));

  const cents = (value) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const money = (value) => (data.unit === "dollars" ? `$${value >= 1 ? cents(value) : value.toPrecision(3)}` : count(value));
  const callAt = (x) => {
    const bounds = plot.getBoundingClientRect();
    return Math.min(width - 1e-6, Math.max(0, ((x - bounds.left) / bounds.width) * width));
  };
  const stepAt = (call) => data.right.findIndex((right) => call < right);
  const line = (text, value, kind) => {
    const row = element("div", kind ? `k-${kind}` : "muted");
    if (kind) row.append(element("i", "chip"));
    row.append(element("span", "", text), element("span", "", value));
    return row;
  };
  const show = (at) => {
    const left = at ? data.right[at - 1] : 0;
    const lines = [line("tokens shown", count(data.tokens[at])), line("everything", count(data.whole[at]))];
    for (const [kind, values] of data.kinds) if (values[at]) lines.push(line(names[kind], count(values[at]), kind));
    lines.push(line("unchanged since the call before", count(data.cached[at])));
    if (data.billed[at] !== null) lines.push(line("billed prompt", count(data.billed[at])));
    lines.push(line("cost, estimated", money(data.cost[at])), line("cost of everything", money(data.cost_whole[at])));
    lines.push(line("so far", `${money(data.spent[at])} of ${money(data.spent_whole[at])}`));
    const head = element("div", "head");
    head.append(element("b", "", `Turn ${count(data.turn[at])}`), element("span", "muted", `before m${data.message[at]}`));
    box.replaceChildren(head, ...lines);
    const x = (((left + data.right[at]) / 2) / width) * plot.clientWidth;
    hair.style.left = `${x}px`;
    figure.classList.add("pointed");
    box.style.left = `${x + 16 + box.offsetWidth > plots.clientWidth + 150 ? Math.max(0, x - box.offsetWidth - 14) : x + 14}px`;
  };
  const leave = () => figure.classList.remove("pointed");
  const open = (turn) => {
    const url = new URL(figure.dataset.view, location.href);
    url.searchParams.set("turn", turn);
    const zoom = new URLSearchParams(location.search);
    for (const name of ["first", "last"]) if (zoom.has(name)) url.searchParams.set(name, zoom.get(name));
    location.assign(url);
  };
  const inside = (event) => {
    const bounds = plot.getBoundingClientRect();
    return event.clientX >= bounds.left - 4 && event.clientX <= bounds.right + 4 && event.clientY >= bounds.top;
  };

  figure.addEventListener("pointermove", (event) => {
    if (start !== null) {
      const [a, b] = [start.x, event.clientX].map((x) => (callAt(x) / width) * plot.clientWidth).sort((x, y) => x - y);
      start.moved ||= b - a > 6;
      brush.style.left = `${a}px`;
      brush.style.width = `${b - a}px`;
      figure.classList.toggle("brushing", start.moved);
    }
    if (inside(event)) show((chosen = stepAt(callAt(event.clientX))));
    else leave();
  });
  figure.addEventListener("pointerleave", () => { if (start === null) leave(); });
  figure.addEventListener("pointerdown", (event) => {
    if (event.button || !inside(event) || event.target.closest("a")) return;
    start = { x: event.clientX, moved: false };
    if (event.pointerType !== "touch") figure.setPointerCapture(event.pointerId);
  });
  figure.addEventListener("pointercancel", () => { start = null; figure.classList.remove("brushing"); });
  figure.addEventListener("pointerup", (event) => {
    if (start === null) return;
    const [low, high] = [start.x, event.clientX].map((x) => stepAt(callAt(x))).sort((a, b) => a - b);
    const isRange = start.moved && high > low;
    start = null;
    figure.classList.remove("brushing");
    if (isRange) zoom(data.turn[low], data.turn[high]);
    else open(data.turn[stepAt(callAt(event.clientX))]);
  });
  figure.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    if (event.target !== figure) return;
    if (event.key in moves) {
      const last = data.turn.length - 1;
      chosen = Math.min(last, Math.max(0, (chosen < 0 ? last : chosen) + moves[event.key]));
      show(chosen);
      event.preventDefault();
    } else if (event.key === "Enter" && chosen >= 0) open(data.turn[chosen]);
    else if (event.key === "Escape") leave();
  });
  figure.addEventListener("blur", leave);
}

/** Fetch the charts again, of a range of turns, and keep the range in the address. */
async function zoom(first, last) {
  const here = new URL(location.href);
  for (const [name, value] of [["first", first], ["last", last]]) {
    if (value) here.searchParams.set(name, value);
    else here.searchParams.delete(name);
  }
  history.replaceState(null, "", here);
  await refreshChart();
}

const chart = document.getElementById("chart");

/** Fetch the charts of the range in the address. */
export async function refreshChart() {
  const url = new URL(chart.dataset.url, location.href);
  const here = new URLSearchParams(location.search);
  for (const name of ["first", "last", "turn"]) if (here.get(name)) url.searchParams.set(name, here.get(name));
  try {
    chart.replaceChildren(elementsOf(await fetchPart(url)));
    drawChart();
  } catch (error) {
    say(error.message);
  }
}

let pause = 500; // milliseconds until the figures are asked for again

function drawChart() {
  const figure = chart.querySelector("#timeline");
  if (figure) useTimeline(figure);
  const figures = chart.querySelector("#figures");
  const isUnread = document.getElementById("unread");
  if (figures?.dataset.complete === "no" && !figures.querySelector(".bad")) {
    setTimeout(refreshChart, pause);
    pause = Math.min(8_000, pause * 1.5); // A long history takes minutes.
  } else if (isUnread && figures?.dataset.complete === "yes" && !drawChart.reloaded) {
    drawChart.reloaded = true;
    location.reload();
  }
}

chart?.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-zoom-out]");
  if (!link || !plain(event)) return;
  event.preventDefault();
  zoom(null, null);
});
chart?.addEventListener("chart-stale", refreshChart); // By live.js, when the conversation has grown.
if (chart) drawChart();
