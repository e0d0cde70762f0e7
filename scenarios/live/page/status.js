"use strict";
// The top of the page: the sentences on what was played, the bar with Play, Step and Restart, and
// the line that says what went wrong.

function showFault(text) {
  setText(byId("fault"), text);
}

function showState(state) {
  market.clock = state.clock;
  if (state.build && state.builds !== market.builds) showBuild(state);
  // what was refused stays to be read while it plays, until something else is done
  const isNew = state.version !== market.version;
  if (state.fault || (isNew && !market.wasRefused)) showFault(state.fault);
  market.version = state.version;
  market.isPlaying = state.playing;
  market.rounds = state.played;
  showBar(state);
  byId("verdict").setAttribute("aria-live", state.playing ? "off" : "polite");
  setText(byId("verdict"), state.verdict);
  setText(byId("saving"), state.saving);
  showPlayers(state);
  byId("description").hidden = state.replacements.length > 0;  // it is of the file as it stands
  if (state.agent) showAgent(state);
}

function showBar(state) {
  const isOver = state.end !== "";
  const played = state.played.toLocaleString("en");
  const rounds = state.rounds.toLocaleString("en");
  byId("play").textContent = state.playing ? "Pause" : "Play";
  byId("play").disabled = isOver;
  byId("step").disabled = isOver;
  byId("restart").disabled = false;
  byId("count").textContent = `${played} of ${rounds} rounds` + (isOver ? `: ${state.end}` : "");
  if (document.activeElement !== byId("speed")) byId("speed").value = state.speed;
}

// A new market: everything that is shown of the old one goes.
function showBuild(state) {
  const build = state.build;
  market.builds = state.builds;
  market.agents = build.agents;
  byId("name").textContent = build.name;
  byId("description").textContent = build.description;
  byId("seed").value = build.seed;
  document.title = `${build.name}, live`;
  showScenario(build.scenario);
  showMenus(build);
  showKeys(build.keys);
  forgetAgent();
  forgetFigures();
}

byId("play").addEventListener("click", () => act(market.isPlaying ? "pause" : "play"));
byId("step").addEventListener("click", () => act("step"));
byId("restart").addEventListener("click", () => act("restart"));
byId("speed").addEventListener("change", () =>
  act("speed", { value: Number(byId("speed").value) }));
byId("seed").addEventListener("change", () =>
  act("set", { name: "seed", value: Number(byId("seed").value) }));
