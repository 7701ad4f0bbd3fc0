// Figures of the conversations on a page: measured after the first paint, some at a time.
const most = 20;

for (const table of document.querySelectorAll("table[data-figures]")) fill(table);

async function fill(table) {
  // The name as in the link: HTML and forms change some characters of a plain one.
  const rows = new Map([...table.querySelectorAll("tbody tr")].map((row) => [row.querySelector("a").pathname.split("/").at(-1), row]));
  while (rows.size) {
    const url = new URL(table.dataset.figures, location.href);
    for (const name of [...rows.keys()].slice(0, most)) url.searchParams.append("name", name);
    const answer = await fetch(url, { credentials: "same-origin" });
    if (!answer.ok) return;
    const measured = Object.entries(await answer.json());
    if (!measured.length) return;
    for (const [name, cells] of measured) {
      show(rows.get(name), cells);
      rows.delete(name);
    }
  }
}

function show(row, cells) {
  const template = document.createElement("template");
  template.innerHTML = `<table><tbody><tr>${cells}</tr></tbody></table>`;
  for (const old of row.querySelectorAll("[data-figure]")) old.remove();
  row.append(...template.content.querySelectorAll("td"));
}
