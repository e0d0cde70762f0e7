"use strict";
const hint = () => document.querySelectorAll(".wide").forEach((box) => {
  const more = box.classList.toggle("more", box.scrollWidth > box.clientWidth);
  more ? box.tabIndex = 0 : box.removeAttribute("tabindex");
});
hint();
addEventListener("resize", hint);
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const text = (row) => row.cells[column].textContent.trim();
      const number = (row) => parseFloat(text(row).replaceAll(",", ""));
      const rows = [...body.rows];
      const known = rows.filter((row) => text(row) !== "-");
      const numeric = known.every((row) => !Number.isNaN(number(row)));
      known.sort((a, b) => sign * (numeric ? number(a) - number(b)
        : text(a).localeCompare(text(b))));
      body.append(...known, ...rows.filter((row) => text(row) === "-"));
    });
  });
}
