// A wide table scrolls sideways. Make it reachable by the keyboard.
addEventListener("load", () => {
  for (const wrapper of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (wrapper.scrollWidth > wrapper.clientWidth) wrapper.tabIndex = 0;
  }
});
