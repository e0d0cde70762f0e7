"use strict";
// What a report page does by itself: it draws the charts, follows the colours of the device, marks
// tables that are wider than the page, and sorts a table by the column whose head is clicked.
// theme.py puts the page together and replaces the name in braces.

const DARK_COLOURS = {DARK};  // the partner of each colour of the light theme
const SMALL_SCREEN = "(pointer: coarse), (max-width: 40rem)";
const PRINTED_WIDTH = 640;  // pixels
const LEGEND_LINE = 30;  // pixels: one line of a legend is in the height of a chart
const MAX_LABEL_LENGTH = 12;  // characters in one line, on a small screen
const MISSING = "-";  // what a table shows where there is no value

// On a small screen a finger scrolls the page, and tools would hide titles.
const isSmallScreen = matchMedia(SMALL_SCREEN).matches;
const darkTheme = matchMedia("(prefers-color-scheme: dark)");
const charts = [];  // { box, chart }: an element and what Plotly draws in it, in light colours

const PLOTLY_OPTIONS = {
  displaylogo: false,
  displayModeBar: isSmallScreen ? false : "hover",
  responsive: true,
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
  showSendToCloud: false,
  plotlyServerURL: "",
};

// --- Charts -------------------------------------------------------------------------------------

// A copy of a chart in the colours of the dark theme.
function darkened(chart) {
  const text = JSON.stringify(chart).replace(
    /#[0-9a-f]{6}\b/gi, (colour) => DARK_COLOURS[colour.toLowerCase()] || colour);
  return JSON.parse(text);
}

function inCurrentTheme(chart) {
  return darkTheme.matches ? darkened(chart) : chart;
}

// A label in two lines, parted at the blank or hyphen where both are about as long.
function inTwoLines(label) {
  if (label.length <= MAX_LABEL_LENGTH) return label;
  const cuts = [...label.matchAll(/[ -](?=[^ ])/g)].map((match) => match.index + 1);
  if (!cuts.length) return label;
  const imbalance = (cut) => Math.abs(2 * cut - label.length);
  const [cut] = cuts.sort((a, b) => imbalance(a) - imbalance(b));
  return `${label.slice(0, cut).trim()}<br>${label.slice(cut)}`;
}

// Make the layout of a chart fit a small screen.
function fitToSmallScreen(layout) {
  layout.dragmode = false;
  for (const [name, axis] of Object.entries(layout)) {
    if (axis.ticktext && axis.type !== "log") {
      axis.tickfont = { size: 10 };
      axis.ticktext = axis.ticktext.map(inTwoLines);
    } else if (name.startsWith("xaxis") && !axis.nticks) {
      axis.nticks = 4;  // dates are long words
    }
  }
}

// Make a chart higher where its legend takes more than the one line that is in its height.
function makeRoomForLegend(box, chart) {
  const legend = box.querySelector(".legend .bg");
  if (!legend) return;
  const missing = Math.ceil(legend.getBoundingClientRect().height) - LEGEND_LINE;
  if (missing <= 0) return;
  chart.layout.height += missing;
  box.style.height = `${chart.layout.height}px`;
  Plotly.relayout(box, { height: chart.layout.height });
}

// Draw a chart from the script element that has its data.
function drawChart(data) {
  const box = document.getElementById(data.dataset.box);
  const chart = JSON.parse(data.textContent);
  box.parentNode.hidden = false;
  if (isSmallScreen) fitToSmallScreen(chart.layout);
  box.style.height = `${chart.layout.height}px`;  // which Plotly forgets when a window is resized
  const painted = inCurrentTheme(chart);
  Plotly.newPlot(box, painted.data, painted.layout, PLOTLY_OPTIONS)
    .then(() => makeRoomForLegend(box, chart));
  charts.push({ box, chart });
}

// Draw all charts again, in the colours that `paint` gives and with other sizes.
function redrawCharts(paint, sizes) {
  for (const { box, chart } of charts) {
    const painted = paint(chart);
    Plotly.react(box, painted.data, { ...painted.layout, ...sizes }, PLOTLY_OPTIONS);
  }
}

document.querySelectorAll("script.chart").forEach(drawChart);
darkTheme.addEventListener("change", () => redrawCharts(inCurrentTheme, {}));
addEventListener("beforeprint", () => {
  redrawCharts((chart) => chart, { autosize: false, width: PRINTED_WIDTH });
});
addEventListener("afterprint", () => {
  redrawCharts(inCurrentTheme, { autosize: true, width: null });
});

// --- Wide tables --------------------------------------------------------------------------------

// Mark boxes that hold more than they show, and let the keyboard reach them to scroll.
function markWideBoxes() {
  for (const box of document.querySelectorAll(".wide")) {
    const isWider = box.scrollWidth > box.clientWidth;
    box.classList.toggle("more", isWider);
    if (isWider) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

markWideBoxes();
addEventListener("resize", markWideBoxes);

// --- Tables that are sorted ---------------------------------------------------------------------

// Sort the rows of a table by a column; rows without a value stay last, as they stood.
function sortRows(body, column, sign) {
  const textOf = (row) => row.cells[column].textContent.trim();
  const numberOf = (row) => parseFloat(textOf(row).replaceAll(",", ""));
  const rows = [...body.rows];
  const withValue = rows.filter((row) => textOf(row) !== MISSING);
  const withoutValue = rows.filter((row) => textOf(row) === MISSING);
  const isNumeric = withValue.every((row) => !Number.isNaN(numberOf(row)));
  const compare = isNumeric
    ? (a, b) => numberOf(a) - numberOf(b)
    : (a, b) => textOf(a).localeCompare(textOf(b));
  withValue.sort((a, b) => sign * compare(a, b));
  body.append(...withValue, ...withoutValue);
}

// Turn the head of a column into a button that sorts by it, and the other way round if pressed
// again.
function makeHeadSort(head, column, body) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const isAscending = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isAscending ? "descending" : "ascending");
    sortRows(body, column, isAscending ? -1 : 1);
  });
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = table.querySelectorAll("thead th");
  heads.forEach((head, column) => makeHeadSort(head, column, table.tBodies[0]));
}
