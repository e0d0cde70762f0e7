"use strict";
// What this page knows of its market, and how it asks the server.
//
// The page has a session of its own on the server. It asks for the state of that session again and
// again (`main.js`), and tells it what a control asks for (`act`). Every answer is the whole state,
// which the other files put in its place: `status.js` the bar and the sentences, `settings.js` the
// keys, `players.js` who plays, `figures.js` the charts and `agent.js` one agent.

const SESSION_KEY = "regretless session";  // under which the browser keeps the session's name
const market = {
  session: sessionStorage.getItem(SESSION_KEY) || "",
  builds: 0,  // number of the build whose controls are shown
  version: -1,  // of the state that is shown: rounds, builds and replacements are counted
  clock: 0,  // of the server, when it wrote that state
  rounds: 0,  // that have been played
  agents: 0,
  isPlaying: false,
  wasRefused: false,  // what was asked for last
};

const byId = (id) => document.getElementById(id);

function makeElement(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Texts are set only where they change: a screen reader would say them again.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setLines(list, lines) {
  const oldLines = [...list.children].map((item) => item.textContent);
  if (oldLines.join("\n") === lines.join("\n")) return;
  list.replaceChildren(...lines.map((line) => makeElement("li", { textContent: line })));
}

// A path counts from the page's own address, which holds the server's token.
async function post(path, question) {
  const response = await fetch(path, {
    method: "POST",
    body: JSON.stringify(question),
    headers: { "Content-Type": "application/json" },
  });
  if (response.ok) return response.json();
  const reason = (await response.text()).trim();
  return { error: reason || `status ${response.status}` };
}

// Asks for the state, with the figures of these names, and shows the answer. What is done does not
// wait for figures that are being drawn, so that answers may overtake each other: an older state
// than the one that is shown is dropped, but for its figures.
async function ask(path, question = {}, figureNames = []) {
  try {
    const state = await post(path, {
      session: market.session,
      builds: market.builds,
      figures: figureNames,
      ...agentToAskFor(),
      ...question,
    });
    if (state.error || path === "do") {
      market.wasRefused = Boolean(state.error);
      showFault(state.error || state.fault);
    }
    if (!state.error && state.clock > market.clock) showState(state);
    if (state.builds === market.builds) showFigures(state, figureNames);
  } catch (error) {
    showFault(`The page has lost its server (${error.message}); start it again and reload.`);
  }
}

function act(action, question = {}) {
  return ask("do", { action, ...question });
}
