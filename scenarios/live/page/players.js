"use strict";
// Who plays: the menus of forecasters and adversaries, what is guaranteed, and who was replaced.

const ROLES = ["forecaster", "adversary"];
let shownPlayers = {};  // the name of each player that its menu showed last, by role

function showMenus(build) {
  setOptions(byId("forecaster"), build.forecasters);
  setOptions(byId("adversary"), build.adversaries);
  shownPlayers = {};  // so that both menus show who plays
}

function setOptions(menu, names) {
  const oldNames = [...menu.options].map((option) => option.value);
  if (oldNames.join() === names.join()) return;
  menu.replaceChildren(...names.map((name) => new Option(name, name)));
}

// A menu is left alone until its player changes: somebody may be choosing in it.
function showPlayers(state) {
  for (const role of ROLES) {
    const name = state.players[role];
    if (shownPlayers[role] !== name) {
      byId(role).value = name;
      shownPlayers[role] = name;
    }
  }
  setLines(byId("promises"), state.promises);
  setLines(byId("replaced"), state.replacements);
}

for (const role of ROLES) {
  onSubmit(`replace-${role}`, () => act("replace", { role, name: byId(role).value }));
}
