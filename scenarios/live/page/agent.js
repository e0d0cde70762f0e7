"use strict";
// One agent, chosen by its number or by a click on its dot: facts, replacements, and its path.

const REPLACEMENT_HEADERS = ["action", "times", "best replacement", "regret per round"];
let chosenAgent = null;  // its number, from 1
let agentVersion = -1;  // of the market when the agent was shown last

// The part of a question that asks for the agent, where what is shown of it is old.
function agentToAskFor() {
  const isOld = agentVersion !== market.version;
  return chosenAgent && isOld ? { agent: chosenAgent } : {};
}

function chooseAgent(number) {
  byId("agent").value = number;
  chosenAgent = number;
  agentVersion = -1;
  ask("state");
}

// Another market may have fewer agents; the one that was chosen stays if it is there.
function forgetAgent() {
  agentVersion = -1;
  byId("agent").max = market.agents;
  if (chosenAgent > market.agents) chosenAgent = null;
  if (!chosenAgent) {
    byId("agent").value = "";
    byId("who").replaceChildren();
  }
}

function showAgent(state) {
  const agent = state.agent;
  agentVersion = state.version;
  if (!byId("chart-path")) makeAgentSection(agent.caption);
  byId("chart-path").setAttribute("aria-label", `Path of agent ${agent.number}`);
  setLines(byId("facts"), agent.lines);
  byId("replacements").replaceChildren(makeElement("table", {},
    makeElement("thead", {}, makeTableRow("th", REPLACEMENT_HEADERS)),
    makeElement("tbody", {}, ...agent.swaps.map((cells) => makeTableRow("td", cells)))));
  byId("path").hidden = !agent.figure;
  if (agent.figure) drawChart(byId("chart-path"), agent.figure);
}

function makeAgentSection(caption) {
  const chartBox = makeElement("div", { id: "chart-path" });
  chartBox.setAttribute("role", "img");
  byId("who").replaceChildren(
    makeElement("ul", { className: "note", id: "facts" }),
    makeElement("div", { className: "wide", id: "replacements" }),
    makeElement("figure", {},
      makeElement("div", { className: "card", id: "path" }, chartBox),
      makeElement("figcaption", { textContent: caption })));
}

// Every second column holds words, which stand to the left (class "t").
function makeTableRow(tag, cells) {
  const makeCell = (text, column) =>
    makeElement(tag, { textContent: text, className: column % 2 ? "" : "t" });
  return makeElement("tr", {}, ...cells.map(makeCell));
}

byId("agent").addEventListener("change", () => chooseAgent(Number(byId("agent").value)));
