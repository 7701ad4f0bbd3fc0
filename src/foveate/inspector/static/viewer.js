// Shows the view of any call in a saved file. Without this script the file shows the last view.
(() => {
  const holder = document.getElementById("saved-views");
  if (!holder) return;
  const { scenes } = JSON.parse(holder.textContent);
  const place = document.querySelector(".saved-rows");
  const form = document.querySelector(".viewer-bar");
  const { scene, back, next, call, where } = form.elements;
  const number = (value) => Math.round(value).toLocaleString("en");
  const rows = new Map();
  const collect = (root) => {
    for (const row of root.querySelectorAll("[data-form]")) rows.set(Number(row.dataset.form), row);
  };
  collect(place);
  collect(document.getElementById("saved-forms").content);

  const chosen = () => scenes[scene ? Number(scene.value) : 0];
  const formsAt = (at) => {
    const forms = [];
    for (const [start, removed, added] of at.changes.slice(0, Number(call.value))) forms.splice(start, removed, ...added);
    return forms;
  };
  const gap = (text) => Object.assign(document.createElement("p"), { className: "soft saved-gap", textContent: text });

  function draw() {
    const at = chosen();
    const list = [];
    let missing = 0;
    let seen = 0;
    const flush = () => {
      if (missing) list.push(gap(`${number(missing)} messages are left out of this file`));
      missing = 0;
    };
    for (const id of formsAt(at)) {
      const row = rows.get(id);
      if (!row) { missing += 1; continue; }
      flush();
      const article = row.firstElementChild;
      const position = Number(article.dataset.position);
      if (seen && position > seen + 1) list.push(gap(`m${seen + 1} to m${position - 1}: not shown to the model`));
      seen = Math.max(seen, position, Number(article.dataset.last));
      list.push(row);
    }
    flush();
    place.replaceChildren(...list);
    const index = Number(call.value) - 1;
    where.textContent = `call ${number(at.turns[index])}, before message ${number(at.messages[index])}: ${number(at.tokens[index])} tokens`;
    back.disabled = index === 0;
    next.disabled = index === at.changes.length - 1;
  }

  function choose(value) {
    call.max = chosen().changes.length;
    call.value = value ?? call.max;
    draw();
  }

  form.addEventListener("input", (event) => (event.target === scene ? choose() : draw()));
  form.addEventListener("submit", (event) => event.preventDefault());
  back.addEventListener("click", () => choose(Number(call.value) - 1));
  next.addEventListener("click", () => choose(Number(call.value) + 1));
  form.hidden = false;
  choose();

  // A click on a chart shows the view of that call.
  for (const plot of document.querySelectorAll("[data-calls]")) {
    const index = Number(plot.dataset.scene ?? -1);
    if (!scenes[index]) continue;
    plot.classList.add("clickable");
    plot.addEventListener("click", (event) => {
      const box = plot.getBoundingClientRect();
      const turn = Math.ceil(((event.clientX - box.left) / box.width) * Number(plot.dataset.width));
      if (scene) scene.value = String(index);
      const at = scenes[index].turns.findIndex((each) => each >= turn);
      choose(at < 0 ? undefined : at + 1);
      document.getElementById("views").scrollIntoView();
    });
  }
})();
