// Helpers for the scripts of all pages. Each page works without scripts.

/** Fetch a part of a page as text. Throws an Error with the server's message. */
export async function fetchPart(url, options = {}) {
  const answer = await fetch(url, { credentials: "same-origin", headers: { "x-part": "1" }, ...options });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.slice(0, 300) || answer.statusText);
  return text;
}

/** Return the elements of an HTML text from the server. */
export function elementsOf(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

/** Format a whole number as the server does: 1,234,567. */
export function count(value) {
  return Math.round(value).toLocaleString("en");
}

/** Tell a person and a screen reader what happened. */
export function say(text) {
  let place = document.getElementById("said");
  if (!place) {
    place = document.body.appendChild(document.createElement("div"));
    place.id = "said";
    place.setAttribute("role", "status");
  }
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(place.timer);
  place.timer = setTimeout(() => place.classList.remove("shown"), 4000);
}

/** Whether the person types into a field, so that keys are text. */
export function isTyping(event) {
  return event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]") !== null;
}

/** Times are written by the server in UTC; show them in the zone of the browser. */
for (const time of document.querySelectorAll("time[datetime]")) {
  const date = new Date(time.dateTime);
  if (!Number.isNaN(date.valueOf())) time.title = date.toLocaleString();
}
