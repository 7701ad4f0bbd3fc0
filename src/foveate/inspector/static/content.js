// Opens what a part leaves out in its place. Without this script, the same links lead to pages.

import { elementsOf, fetchPart, say } from "./page.js";

/** Where the fetched part goes: in place of the block or of all arguments, after the block, or in place of the link. */
const WAYS = {
  block: (link) => link.closest(".c-block"),
  arguments: (link) => link.closest(".c-arguments"),
  after: (link) => link.closest(".c-foot"),
  here: (link) => link,
};

document.addEventListener("click", async (event) => {
  const link = event.target instanceof Element ? event.target.closest("a.c-more") : null;
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const place = (WAYS[link.dataset.way] ?? WAYS.here)(link);
  if (!place) return;
  event.preventDefault();
  if (link.ariaBusy === "true") return;
  link.ariaBusy = "true";
  try {
    const part = elementsOf(await fetchPart(link.href));
    const first = part.firstElementChild;
    place.replaceWith(part);
    first?.setAttribute("tabindex", "-1");
    first?.focus({ preventScroll: true });
  } catch (error) {
    link.ariaBusy = "false";
    say(error.message);
  }
});
