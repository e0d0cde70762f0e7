"use strict";
// Fills the page with what the server says of this page's session, and tells it what is asked for.
const at = (id) => document.getElementById(id);
const KEPT = "regretless session";
const live = { session: sessionStorage.getItem(KEPT) || "", builds: 0, version: -1, clock: 0, agents: 0,
  played: 0, playing: false, refused: false, names: "", agent: null, told: -1, drawn: {}, named: {} };
const places = [...document.querySelectorAll(".place")];
const visible = new Set();

// paths count from the page's own address, which holds the server's token
async function post(path, asked) {
  const sent = await fetch(path, { method: "POST", body: JSON.stringify(asked),
    headers: { "Content-Type": "application/json" } });
  return sent.ok ? sent.json() : { error: (await sent.text()).trim() || `status ${sent.status}` };
}

function fail(text) { if (at("fault").textContent !== text) at("fault").textContent = text; }

function element(tag, properties = {}, ...inside) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...inside);
  return made;
}

const FIRST = 4;  // figures that every market has; the others wait until there is something to draw

// what is on the screen and older than the market; each once, so that none stays that has nothing
function wanted() {
  const unknown = (name) => live.played > 1 && live.drawn[name] === undefined;
  return places.filter((place) => !place.hidden && (visible.has(place) || unknown(place.dataset.name)))
    .map((place) => place.dataset.name).filter((name) => live.drawn[name] !== live.version);
}

// what is done does not wait for figures that are being drawn, so answers may overtake each other
async function ask(path, more = {}, figures = []) {
  const asked = { session: live.session, builds: live.builds, figures, ...more };
  if (live.agent && live.told !== live.version) asked.agent = live.agent;
  try {
    const state = await post(path, asked);
    if (state.error || path === "do") {
      live.refused = Boolean(state.error);
      fail(state.error || state.fault);
    }
    if (!state.error && state.clock > live.clock) show(state);
    if (state.builds === live.builds) draw(state, figures);
  } catch (error) {
    fail(`The page has lost its server (${error.message}); start it again and reload.`);
  }
}
const act = (action, more = {}) => ask("do", { action, ...more });

function show(state) {
  live.clock = state.clock;
  if (state.build && state.builds !== live.builds) build(state);
  // what was refused stays to be read while it plays, until something else is done
  if (state.fault || (state.version !== live.version && !live.refused)) fail(state.fault);
  live.version = state.version;
  live.playing = state.playing;
  live.played = state.played;
  at("play").textContent = state.playing ? "Pause" : "Play";
  const over = state.played >= state.rounds;
  at("play").disabled = at("step").disabled = over;
  at("restart").disabled = false;
  at("count").textContent =
    `${state.played.toLocaleString("en")} of ${state.rounds.toLocaleString("en")} rounds`;
  at("verdict").setAttribute("aria-live", state.playing ? "off" : "polite");
  text(at("verdict"), state.verdict);
  text(at("saving"), state.saving);
  if (document.activeElement !== at("speed")) at("speed").value = state.speed;
  for (const [role, name] of Object.entries(state.named)) {
    if (live.named[role] !== name) at(role).value = live.named[role] = name;
  }
  list(at("promises"), state.promises);
  list(at("replaced"), state.replaced);
  at("description").hidden = state.replaced.length > 0;  // which is of the file as it stands
  if (state.agent) person(state);
}

function text(box, value) { if (box.textContent !== value) box.textContent = value; }

function list(box, lines) {
  const old = [...box.children].map((item) => item.textContent);
  if (old.join("\n") === lines.join("\n")) return;
  box.replaceChildren(...lines.map((line) => element("li", { textContent: line })));
}

function draw(state, figures) {
  if (!state.figures) return;
  for (const name of figures) {
    const place = places.find((other) => other.dataset.name === name);
    const chart = state.figures[name];
    live.drawn[name] = state.version;
    if (!chart) { place.hidden = state.played > 1; continue; }
    place.classList.remove("waiting");
    plot(at(`chart-${name}`), chart);
  }
}

function plot(box, chart) {
  chart.layout.uirevision = live.builds;
  if (small) chart.layout.dragmode = false;
  box.style.height = `${chart.layout.height}px`;
  const first = !box.data;
  const shown = themed(chart);
  Plotly.react(box, shown.data, shown.layout, config);
  if (first) box.on("plotly_click", (event) => {
    const number = event.points[0].customdata;
    if (Number.isInteger(number)) choose(number);
  });
}

// a new market: its controls, and figures from the start
function build(state) {
  const told = state.build;
  live.builds = state.builds;
  live.drawn = {};
  live.told = -1;
  live.agents = told.agents;
  at("name").textContent = told.name;
  at("description").textContent = told.description;
  at("seed").value = told.seed;
  at("agent").max = told.agents;
  if (live.agent > told.agents) live.agent = null;
  if (!live.agent) { at("agent").value = ""; at("who").replaceChildren(); }
  document.title = `${told.name}, live`;
  const chooser = at("scenario");
  if (![...chooser.options].some((option) => option.value === told.scenario)) {
    chooser.append(new Option(told.scenario, told.scenario));
  }
  chooser.value = told.scenario;
  options(at("forecaster"), told.forecasters);
  options(at("adversary"), told.adversaries);
  live.named = {};  // so that both menus show who plays
  controls(told.keys);
  for (const [order, place] of places.entries()) {
    place.hidden = false;
    place.classList.toggle("waiting", order >= FIRST);
    const box = at(`chart-${place.dataset.name}`);
    if (box.data) { Plotly.purge(box); box.replaceChildren(); delete box.data; }
  }
}

function options(box, names) {
  const old = [...box.options].map((option) => option.value);
  if (old.join() !== names.join()) box.replaceChildren(...names.map((name) => new Option(name, name)));
}

function controls(keys) {
  const names = keys.map((key) => key.name).join("\n");
  if (names !== live.names) {
    live.names = names;
    at("keys").replaceChildren(...keys.filter((key) => key.given).map(control));
    at("others").replaceChildren(...keys.filter((key) => !key.given).map(control));
    at("more").hidden = keys.every((key) => key.given);
  }
  for (const key of keys) {
    const [slider, number] = document.querySelectorAll(`[data-key="${CSS.escape(key.name)}"]`);
    for (const end of ["min", "max"]) slider[end] = Math[end](slider[end], key.value);
    slider.value = number.value = key.value;
  }
}

function control(key, place) {
  const name = key.name.replace(/^cohort\./, "").replace(".parameters.", ".").replaceAll(".", " ");
  const id = `key-${key.given ? "" : "more-"}${place}`;
  const slider = element("input", { type: "range", min: key.low, max: key.high, step: key.step });
  slider.setAttribute("aria-label", `${name}, slider`);
  const number = element("input", { type: "number", id, step: key.step === 1 ? 1 : "any" });
  slider.dataset.key = number.dataset.key = key.name;
  slider.addEventListener("input", () => { number.value = slider.value; });
  let timer;
  const set = (box) => () => {
    clearTimeout(timer);
    timer = setTimeout(() => act("set", { name: key.name, value: Number(box.value) }), 250);
  };
  slider.addEventListener("change", set(slider));
  number.addEventListener("change", set(number));
  const row = element("div", { className: "key" },
    element("label", { htmlFor: id, textContent: name }), slider, number);
  if (key.meaning) {
    const said = element("small", { id: `${id}-means`, textContent: key.meaning });
    number.setAttribute("aria-describedby", said.id);
    row.append(said);
  }
  return row;
}

function choose(number) {
  at("agent").value = number;
  live.agent = number;
  live.told = -1;
  ask("state");
}

function person(state) {
  const agent = state.agent;
  live.told = state.version;
  let box = at("chart-path");
  if (!box) {
    box = element("div", { id: "chart-path" });
    box.setAttribute("role", "img");
    at("who").replaceChildren(element("ul", { className: "note", id: "facts" }),
      element("div", { className: "wide", id: "replacements" }),
      element("figure", {}, element("div", { className: "card", id: "path" }, box),
        element("figcaption", { textContent: agent.caption })));
  }
  box.setAttribute("aria-label", `Path of agent ${agent.number}`);
  list(at("facts"), agent.lines);
  const head = ["action", "times", "best replacement", "regret per round"];
  const row = (tag) => (cells) => element("tr", {}, ...cells.map((cell, i) =>
    element(tag, { textContent: cell, className: i % 2 ? "" : "t" })));
  at("replacements").replaceChildren(element("table", {}, element("thead", {}, row("th")(head)),
    element("tbody", {}, ...agent.swaps.map(row("td")))));
  at("path").hidden = !agent.figure;
  if (agent.figure) plot(box, agent.figure);
}

at("play").addEventListener("click", () => act(live.playing ? "pause" : "play"));
at("step").addEventListener("click", () => act("step"));
at("restart").addEventListener("click", () => act("restart"));
at("speed").addEventListener("change", () => act("speed", { value: Number(at("speed").value) }));
at("seed").addEventListener("change", () =>
  act("set", { name: "seed", value: Number(at("seed").value) }));
at("agent").addEventListener("change", () => choose(Number(at("agent").value)));
function onSubmit(form, handle) {
  at(form).addEventListener("submit", (event) => { event.preventDefault(); handle(event); });
}
onSubmit("chooser", () => act("load", { name: at("scenario").value }));
for (const role of ["forecaster", "adversary"]) {
  onSubmit(`replace-${role}`, () => act("replace", { role, name: at(role).value }));
}
onSubmit("saver", (event) =>
  act("save", { name: at("as").value, way: event.submitter.value }));

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) visible[entry.isIntersecting ? "add" : "delete"](entry.target);
}, { rootMargin: "100px" });
places.forEach((place) => seen.observe(place));
const wide = matchMedia("(min-width: 50rem)");
const fit = () => { at("panel").open = wide.matches; };
wide.addEventListener("change", fit);
night.addEventListener("change", () => { live.drawn = {}; });  // in the other colours
fit();

(async () => {
  try {
    const opened = await post("open", { session: live.session });
    if (opened.error) throw new Error(opened.error);
    live.session = opened.session;
    sessionStorage.setItem(KEPT, live.session);
  } catch (error) {
    fail(`The market could not be built (${error.message}); start the server again and reload.`);
    return;
  }
  for (;;) {  // half of the time at least is left to the market
    const asked = performance.now();
    await ask("state", {}, wanted());
    await new Promise((done) => setTimeout(done, Math.max(500, performance.now() - asked)));
  }
})();
