// The command palette (Ctrl-K): all actions of the page, and conversations by name.
import { fetchPart } from "./page.js";

const MOST = 40;
const PAUSE = 120; // Milliseconds after the last key before conversations are looked for.

let dialog = null;
let field, list, status;
let items = [];
let chosen = 0;
let timer = 0;
let asked = 0;

/** Return the actions of this page: label, and what to do. */
function actions() {
  const found = [];
  const row = document.activeElement?.closest?.("[data-row]");
  for (const one of row?.querySelectorAll("[data-key], [data-open]") ?? []) {
    const label = (one.dataset.label ?? one.textContent).trim().replace(/\s+/g, " ").slice(0, 80);
    if (label) found.push({ label: `${row.dataset.row}: ${label}`, run: () => one.click() });
  }
  for (const one of document.querySelectorAll("[data-palette]")) {
    if (!one.disabled) found.push({ label: one.dataset.palette || one.textContent.trim(), hint: one.dataset.key ?? "", run: () => one.click() });
  }
  const root = document.body.dataset.root ?? "";
  found.push({ label: "All conversations", hint: "g l", run: () => location.assign(`${root}/`) });
  found.push({ label: "Keys", hint: "?", run: () => document.dispatchEvent(new Event("show-keys")) });
  return found;
}

/** Return whether all words stand in a text. */
const fits = (text, words) => words.every((word) => text.toLowerCase().includes(word));

function build() {
  dialog = document.createElement("dialog");
  dialog.id = "palette";
  dialog.className = "palette";
  dialog.setAttribute("role", "dialog");
  dialog.setAttribute("aria-modal", "true");
  dialog.setAttribute("aria-label", "Command palette");
  field = document.createElement("input");
  field.type = "text";
  field.placeholder = "An action, or the name of a conversation";
  field.autocomplete = "off";
  field.spellcheck = false;
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-label": "Action or conversation", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list",
  })) field.setAttribute(name, value);
  list = document.createElement("ul");
  list.id = "palette-list";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Actions and conversations");
  status = document.createElement("p");
  status.className = "hidden";
  status.setAttribute("role", "status");
  dialog.append(field, list, status);
  document.body.append(dialog);
  field.addEventListener("input", update);
  field.addEventListener("keydown", keys);
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) run(Number(option.dataset.at));
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => { if (event.key === "Tab") event.preventDefault(); }); // The field is all there is.
}

function keys(event) {
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
  if (event.key in steps) choose(Math.min(items.length - 1, Math.max(0, chosen + steps[event.key])));
  else if (event.key === "Home" && event.ctrlKey) choose(0);
  else if (event.key === "End" && event.ctrlKey) choose(items.length - 1);
  else if (event.key === "Enter") run(chosen);
  else return;
  event.preventDefault();
}

function run(at) {
  const item = items[at];
  if (!item) return;
  dialog.close();
  item.run();
}

function choose(at) {
  list.children[chosen]?.setAttribute("aria-selected", "false");
  chosen = at;
  const option = list.children[at];
  if (!option) {
    field.removeAttribute("aria-activedescendant");
    return;
  }
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option.id);
}

function show(found) {
  items = found.slice(0, MOST);
  list.replaceChildren(...items.map((item, at) => {
    const option = document.createElement("li");
    option.id = `palette-${at}`;
    option.dataset.at = at;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    option.append(Object.assign(document.createElement("span"), { textContent: item.label }));
    if (item.hint) option.append(Object.assign(document.createElement("span"), { className: "soft", textContent: item.hint }));
    return option;
  }));
  status.textContent = items.length === 0 ? "Nothing fits." : `${items.length} found.`;
  choose(0);
}

let page = [];

function update() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const own = page.filter((item) => fits(item.label, words));
  show(own);
  clearTimeout(timer);
  const number = ++asked;
  timer = setTimeout(async () => {
    let found = [];
    try {
      found = JSON.parse(await fetchPart(`${document.body.dataset.root ?? ""}/palette?q=${encodeURIComponent(field.value.trim())}`));
    } catch { /* The server is gone: the page's own actions remain. */ }
    if (number !== asked || !dialog.open) return;
    const at = chosen;
    show([...own, ...found.map((one) => ({ label: one.title, hint: one.source, run: () => location.assign(one.url) }))]);
    choose(Math.min(at, Math.max(0, items.length - 1)));
  }, PAUSE);
}

function open() {
  if (dialog === null) build();
  page = actions();
  field.value = "";
  dialog.showModal();
  field.focus();
  update();
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (dialog?.open) dialog.close();
  else if (!document.querySelector("dialog[open]")) open();
});
for (const button of document.querySelectorAll("[data-opens=palette]")) {
  button.hidden = false; // It does nothing without this script.
  button.addEventListener("click", open);
}
