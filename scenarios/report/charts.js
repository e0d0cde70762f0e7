"use strict";
const boxes = [];
// on a small screen a finger scrolls the page, and tools would hide titles
const small = matchMedia("(pointer: coarse), (max-width: 40rem)").matches;
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
    if (axis.ticktext)
      Object.assign(axis, { tickfont: { size: 10 }, ticktext: axis.ticktext.map(halved) });
    else if (name.startsWith("xaxis") && !axis.nticks) axis.nticks = 4;  // dates are long words
  }
  box.style.height = `${chart.layout.height}px`;  // which Plotly forgets when a window is resized
  Plotly.newPlot(box, chart.data, chart.layout, config).then(() => {
    const legend = box.querySelector(".legend .bg");  // one line of it is in the height
    const more = legend ? Math.ceil(legend.getBoundingClientRect().height) - 30 : 0;
    if (more <= 0) return;
    box.style.height = `${chart.layout.height + more}px`;
    Plotly.relayout(box, { height: chart.layout.height + more });
  });
  boxes.push(box);
}
addEventListener("beforeprint", () => boxes.forEach((box) =>
  Plotly.relayout(box, { autosize: false, width: 640 })));
addEventListener("afterprint", () => boxes.forEach((box) =>
  Plotly.relayout(box, { autosize: true, width: null })));
