// Shows boxes that follow the pointer. Without this script the report only lacks these boxes.
(() => {
  const tip = document.body.appendChild(Object.assign(document.createElement("div"), { id: "tip" }));
  const number = (value) => Math.round(value).toLocaleString("en");
  const line = (text, value, kind) => {
    const row = document.createElement("div");
    if (kind) {
      row.appendChild(document.createElement("span")).className = `chip k-${kind}`;
    }
    row.appendChild(document.createElement("span")).textContent = text;
    row.appendChild(document.createElement("span")).textContent = value;
    if (!kind) row.className = "muted";
    return row;
  };
  const names = JSON.parse(document.getElementById("kinds").textContent);
  for (const plot of document.querySelectorAll("[data-calls]")) {
    const data = JSON.parse(document.getElementById(plot.dataset.calls).textContent);
    const hair = plot.appendChild(Object.assign(document.createElement("div"), { className: "hair" }));
    const width = Number(plot.dataset.width);
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const call = ((event.clientX - box.left) / box.width) * width;
      const at = data.right.findIndex((right) => call < right);
      if (at < 0 || call < 0) return leave();
      const head = document.createElement("div");
      head.appendChild(document.createElement("b")).textContent = `Call ${number(data.turn[at])}`;
      const where = head.appendChild(document.createElement("span"));
      where.textContent = `before message ${number(data.message[at])}`;
      where.className = "muted";
      tip.replaceChildren(head, line("tokens in the view", number(data.tokens[at])));
      for (const [kind, values] of data.kinds)
        if (values[at]) tip.append(line(names[kind], number(values[at]), kind));
      tip.append(line("unchanged since the last call", number(data.cached[at])));
      const plan = data.edits[at];
      if (plan) tip.append(line(plan[0] === 1 ? "1 edit" : `${number(plan[0])} edits`, `${number(plan[1])} → ${number(plan[2])}`));
      const left = at ? data.right[at - 1] : 0;
      hair.style.left = `${((left + data.right[at]) / 2 / width) * 100}%`;
      hair.style.display = tip.style.display = "block";
      const x = event.pageX + 16 + tip.offsetWidth > innerWidth + scrollX ? event.pageX - tip.offsetWidth - 12 : event.pageX + 16;
      tip.style.left = `${Math.max(scrollX + 4, x)}px`;
      tip.style.top = `${event.pageY + 14}px`;
    });
    const leave = () => { hair.style.display = tip.style.display = "none"; };
    plot.addEventListener("pointerleave", leave);
  }
})();
