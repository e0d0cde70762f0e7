"use strict";
// The panel beside the figures: which scenario is played, its numeric keys, and saving.

const SET_DELAY_MS = 250;  // a slider that is still moving restarts the market only once
let shownKeyNames = "";  // of the keys that have a control, a line each

function onSubmit(formId, handle) {
  byId(formId).addEventListener("submit", (event) => {
    event.preventDefault();
    handle(event);
  });
}

function showScenario(name) {
  const menu = byId("scenario");
  const isListed = [...menu.options].some((option) => option.value === name);
  if (!isListed) menu.append(new Option(name, name));
  menu.value = name;
}

// Controls that are there already stay, with the focus that one of them may have.
function showKeys(keys) {
  const keyNames = keys.map((key) => key.name).join("\n");
  if (keyNames !== shownKeyNames) {
    shownKeyNames = keyNames;
    const givenKeys = keys.filter((key) => key.given);
    const otherKeys = keys.filter((key) => !key.given);
    byId("keys").replaceChildren(...givenKeys.map(makeKeyControl));
    byId("others").replaceChildren(...otherKeys.map(makeKeyControl));
    byId("more").hidden = otherKeys.length === 0;
  }
  for (const key of keys) {
    const selector = `[data-key="${CSS.escape(key.name)}"]`;
    const [slider, number] = document.querySelectorAll(selector);
    slider.min = Math.min(slider.min, key.value);
    slider.max = Math.max(slider.max, key.value);
    slider.value = key.value;
    number.value = key.value;
  }
}

// A row with the key's name, its slider, its number and what it means.
function makeKeyControl(key, index) {
  const label = key.name
    .replace(/^cohort\./, "")
    .replace(".parameters.", ".")
    .replaceAll(".", " ");
  const id = `key-${key.given ? "" : "more-"}${index}`;
  const slider = makeElement("input",
    { type: "range", min: key.low, max: key.high, step: key.step });
  slider.setAttribute("aria-label", `${label}, slider`);
  const number = makeElement("input", { type: "number", id, step: key.step === 1 ? 1 : "any" });
  slider.dataset.key = key.name;
  number.dataset.key = key.name;
  slider.addEventListener("input", () => { number.value = slider.value; });
  let timer;
  const setKeyTo = (input) => {
    clearTimeout(timer);
    timer = setTimeout(
      () => act("set", { name: key.name, value: Number(input.value) }), SET_DELAY_MS);
  };
  slider.addEventListener("change", () => setKeyTo(slider));
  number.addEventListener("change", () => setKeyTo(number));
  const row = makeElement("div", { className: "key" },
    makeElement("label", { htmlFor: id, textContent: label }), slider, number);
  if (key.meaning) {
    const meaning = makeElement("small", { id: `${id}-means`, textContent: key.meaning });
    number.setAttribute("aria-describedby", meaning.id);
    row.append(meaning);
  }
  return row;
}

onSubmit("chooser", () => act("load", { name: byId("scenario").value }));
onSubmit("saver", (event) =>
  act("save", { name: byId("as").value, way: event.submitter.value }));

// The panel is open where there is room for it beside the figures.
const wideScreen = matchMedia("(min-width: 50rem)");
function fitPanel() {
  byId("panel").open = wideScreen.matches;
}
wideScreen.addEventListener("change", fitPanel);
fitPanel();
