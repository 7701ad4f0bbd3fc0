// Keys: rows, turns and actions without a mouse. Never while a person types into a field.
import { isTyping, say } from "./page.js";

const WAIT = 1200; // Milliseconds in which the second key of "g l" counts.
const HELP = [
  ["j, k", "next and previous row"], ["Enter", "open the row"], ["e", "expand"], ["p", "pin or unpin"], ["u", "undo"],
  ["m", "all actions of the message"], ["[, ]", "previous and next turn"], ["/", "search"], ["g l", "list of conversations"],
  ["b", "back to the conversation"], ["Ctrl K", "command palette"], ["?", "this help"],
];

let before = "";
let timer = 0;

const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.getClientRects().length > 0);
const current = () => document.activeElement?.closest?.("[data-row]") ?? null;

/** Focus the next row in a direction; from nowhere, the first one that is in sight. */
function move(step) {
  const all = rows();
  if (all.length === 0) return false;
  const at = all.indexOf(current());
  const seen = all.findIndex((row) => row.getBoundingClientRect().bottom > 60);
  const next = at < 0 ? all[Math.max(0, seen)] : all[Math.min(all.length - 1, Math.max(0, at + step))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
  return true;
}

/** Click the first element that this key belongs to: in the current row, else on the page. */
function click(key) {
  const chosen = `[data-key="${CSS.escape(key)}"]`;
  const found = current()?.querySelector(chosen) ?? [...document.querySelectorAll(chosen)].find((one) => one.closest("[data-row]") === null);
  if (!found) return false;
  found.click();
  return true;
}

function open() {
  const row = current();
  if (row === null || document.activeElement !== row) return false; // Enter on a button or a link is its own.
  const found = row.querySelector("[data-open]") ?? row.querySelector("summary, a[href]");
  if (!found) return false;
  found.click();
  return true;
}

function follow(selector) {
  const found = document.querySelector(selector);
  if (!found) return false;
  found.click();
  return true;
}

function search() {
  const field = document.querySelector("input[type=search]");
  if (!field) return false;
  field.focus();
  field.select();
  return true;
}

/** Show the keys in a dialog, which Escape closes. */
function help() {
  const known = document.getElementById("keys");
  if (known) {
    known.showModal();
    return true;
  }
  const dialog = document.createElement("dialog");
  dialog.id = "keys";
  dialog.className = "card keys";
  dialog.setAttribute("aria-labelledby", "keys-title");
  const title = document.createElement("h2");
  title.id = "keys-title";
  title.textContent = "Keys";
  const list = document.createElement("dl");
  for (const [key, meaning] of HELP) {
    const name = document.createElement("dt");
    const word = document.createElement("dd");
    name.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    word.textContent = meaning;
    list.append(name, word);
  }
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
  close.addEventListener("click", () => dialog.close());
  dialog.append(title, list, close);
  document.body.append(dialog);
  dialog.showModal();
  return true;
}

/** Let a person close the message about an action, and do not show it again on a reload. */
function closeable(notice) {
  const here = new URL(location.href);
  here.searchParams.delete("notice");
  history.replaceState(history.state, "", here);
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
  close.addEventListener("click", () => notice.remove());
  (notice.querySelector("form") ?? notice).append(close);
}

const notice = document.querySelector("main > .notice");
if (notice) closeable(notice);

const ACTIONS = {
  j: () => move(1), k: () => move(-1), Enter: open, "/": search, "?": help,
  "[": () => click("[") || follow("a[rel=prev]"), "]": () => click("]") || follow("a[rel=next]"),
};

document.addEventListener("show-keys", help);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") document.querySelector("main > .notice")?.remove();
  const pair = before && `${before} ${event.key}`;
  before = "";
  clearTimeout(timer);
  if (pair === "g l") {
    event.preventDefault();
    location.assign(document.querySelector('[data-key="g l"]')?.href ?? `${document.body.dataset.root ?? ""}/`);
    return;
  }
  if (event.key === "g") {
    before = "g";
    timer = setTimeout(() => { before = ""; }, WAIT);
    return;
  }
  const done = Object.hasOwn(ACTIONS, event.key) ? ACTIONS[event.key]() : event.key.length === 1 && click(event.key);
  if (done) event.preventDefault();
  else if ("epu".includes(event.key) && event.key.length === 1) say(current() ? "This row has no such action." : "Choose a row first: j or k.");
});
