"use strict";
const boxes = [];
// on a small screen a finger scrolls the page, and tools would hide titles
const small = matchMedia("(pointer: coarse), (max-width: 40rem)").matches;
const DARK = {DARK};  // the partner of each colour of the light theme
const night = matchMedia("(prefers-color-scheme: dark)");
const themed = (chart) => night.matches ? JSON.parse(JSON.stringify(chart).replace(
  /#[0-9a-f]{6}\b/gi, (colour) => DARK[colour.toLowerCase()] || colour)) : chart;
const buttons = [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]];
const config = { displaylogo: false, displayModeBar: small ? false : "hover", responsive: true,
  modeBarButtons: buttons, showSendToCloud: false, plotlyServerURL: "" };
const halved = (text) => {  // in two lines, parted where both are about as long
  const cuts = [...text.matchAll(/[ -](?=[^ ])/g)].map((found) => found.index + 1);
  const [cut] = cuts.sort((a, b) => Math.abs(2 * a - text.length) - Math.abs(2 * b - text.length));
  return cut && text.length > 12 ? `${text.slice(0, cut).trim()}<br>${text.slice(cut)}` : text;
};
for (const data of document.querySelectorAll("script.chart")) {
  const box = document.getElementById(data.dataset.box);
  const chart = JSON.parse(data.textContent);
  box.parentNode.hidden = false;
  if (small) chart.layout.dragmode = false;
  for (const [name, axis] of small ? Object.entries(chart.layout) : []) {
    if (axis.ticktext && axis.type !== "log")
      Object.assign(axis, { tickfont: { size: 10 }, ticktext: axis.ticktext.map(halved) });
    else if (name.startsWith("xaxis") && !axis.nticks) axis.nticks = 4;  // dates are long words
  }
  box.style.height = `${chart.layout.height}px`;  // which Plotly forgets when a window is resized
  const shown = themed(chart);
  Plotly.newPlot(box, shown.data, shown.layout, config).then(() => {
    const legend = box.querySelector(".legend .bg");  // one line of it is in the height
    const more = legend ? Math.ceil(legend.getBoundingClientRect().height) - 30 : 0;
    if (more <= 0) return;
    box.style.height = `${chart.layout.height + more}px`;
    chart.layout.height += more;
    Plotly.relayout(box, { height: chart.layout.height });
  });
  boxes.push([box, chart]);
}
const again = (paint, size) => boxes.forEach(([box, chart]) => {
  const shown = paint(chart);
  Plotly.react(box, shown.data, { ...shown.layout, ...size }, config);
});
night.addEventListener("change", () => again(themed, {}));
addEventListener("beforeprint", () => again((chart) => chart, { autosize: false, width: 640 }));
addEventListener("afterprint", () => again(themed, { autosize: true, width: null }));
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
