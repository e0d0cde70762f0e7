"use strict";
// The figures: which of them are asked for, and how one is drawn.
//
// A figure is asked for while its place is on the screen and what it shows is older than the
// market. Each is asked for once anyway, so that a place that has nothing to show is hidden.

const ALWAYS_SHOWN = 4;  // figures that every market has; the others wait for something to draw
const figurePlaces = [...document.querySelectorAll(".place")];
const placesOnScreen = new Set();
let drawnVersions = {};  // of the market when a figure was drawn last, by the figure's name

function figuresToAskFor() {
  const names = [];
  for (const place of figurePlaces) {
    const name = place.dataset.name;
    const isFirstTime = market.rounds > 1 && drawnVersions[name] === undefined;
    const isOld = drawnVersions[name] !== market.version;
    if (!place.hidden && isOld && (placesOnScreen.has(place) || isFirstTime)) names.push(name);
  }
  return names;
}

function showFigures(state, names) {
  if (!state.figures) return;
  for (const name of names) {
    const place = figurePlaces.find((each) => each.dataset.name === name);
    const chart = state.figures[name];
    drawnVersions[name] = state.version;
    if (chart) {
      place.classList.remove("waiting");
      drawChart(byId(`chart-${name}`), chart);
    } else {
      place.hidden = state.played > 1;
    }
  }
}

function drawChart(box, chart) {
  chart.layout.uirevision = market.builds;  // a zoom stays until there is another market
  if (isSmallScreen) chart.layout.dragmode = false;
  box.style.height = `${chart.layout.height}px`;
  const isFirstTime = !box.data;
  const themedChart = inCurrentTheme(chart);
  Plotly.react(box, themedChart.data, themedChart.layout, PLOTLY_OPTIONS);
  if (isFirstTime) box.on("plotly_click", chooseClickedAgent);
}

function chooseClickedAgent(event) {
  const number = event.points[0].customdata;
  if (Number.isInteger(number)) chooseAgent(number);
}

function forgetFigures() {
  drawnVersions = {};
  for (const [index, place] of figurePlaces.entries()) {
    place.hidden = false;
    place.classList.toggle("waiting", index >= ALWAYS_SHOWN);
    const box = byId(`chart-${place.dataset.name}`);
    if (box.data) {
      Plotly.purge(box);
      box.replaceChildren();
      delete box.data;
    }
  }
}

const screenObserver = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) placesOnScreen.add(entry.target);
    else placesOnScreen.delete(entry.target);
  }
}, { rootMargin: "100px" });
figurePlaces.forEach((place) => screenObserver.observe(place));
darkTheme.addEventListener("change", () => { drawnVersions = {}; });  // in the other colours
