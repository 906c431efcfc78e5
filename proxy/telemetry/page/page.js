"use strict";
// The views, and when they are read again.

const INTERVAL_MS = 2000;
const HISTORY_EVERY = 5;
const VIEWS = ["use", "quotas", "process"];
let paused = false;
let turns = 0;

function view() {
  const named = location.hash.slice(1);
  return VIEWS.includes(named) ? named : "use";
}

function showView() {
  for (const name of VIEWS) {
    element(name).hidden = name !== view();
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === view()) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  refresh();
}

function showState(text, ready, remarks) {
  element("state").textContent = text;
  element("state").className = ready ? "ready" : "problem";
  element("problems").replaceChildren(...remarks.map((remark) => make("li", "", remark)));
}

async function updateUse() {
  const quotas = await readJson("api/quotas");
  rows = quotas.quotas.map(rowOf);
  updated = new Date();
  if (turns % HISTORY_EVERY === 0) takeHistory(await readJson("api/history"));
  turns += 1;
  drawUse(paused);
}

async function updateQuotas() {
  const found = await readJson(`api/configured?${new URLSearchParams({ q: element("find-words").value })}`);
  const shown = found.entities.flatMap((each) => Object.entries(each.quotas).map(([quota, layers]) => {
    const tr = document.createElement("tr");
    tr.dataset.id = JSON.stringify([quota, each.entity]);
    const entity = make("td", "entity");
    const button = make("button", "link", entityText(each.entity));
    button.type = "button";
    button.addEventListener("click", () => openDetail(each.entity, null, quota));
    entity.append(button);
    const value = layers[0].value === undefined || layers[0].value === null ? "no limit" : amount(quota, layers[0].value);
    const cells = [make("td", "kind", quota), make("td", "limit", value), make("td", "layers", layers.map((layer) => layerText(quota, layer)).join("; otherwise "))];
    ["Quota", "In force", "Layers"].forEach((name, place) => { cells[place].dataset.name = name; });
    tr.append(entity, ...cells);
    return tr;
  }));
  replaceRows(element("configured"), shown);
  const more = found.total > found.entities.length ? `; the first ${found.entities.length} are shown` : "";
  element("configured-summary").textContent = `${found.total} entities${more}`;
}

const UPDATES = { use: updateUse, quotas: updateQuotas, process: updateProcess };

async function update() {
  const state = await (await read("readyz")).json();
  showState(state.ready ? "ready" : "not ready", state.ready, [...(state.problems || []), ...(state.warnings || [])]);
  await UPDATES[view()]();
  if (!Object.keys(names).length) readJson("api/overview").then((overview) => { names = overview.keys; }).catch(() => {});
}

function refresh() {
  return update().catch((error) => {
    if (element("login").hidden) showState(`${error.message}; the page shows the last response`, false, []);
  });
}

async function follow() {
  if (!paused && !document.hidden) await refresh();
  setTimeout(follow, INTERVAL_MS);
}

element("filter").addEventListener("submit", (event) => event.preventDefault());
element("find").addEventListener("submit", (event) => event.preventDefault());
element("sort-by").addEventListener("input", () => {
  const column = COLUMNS.find((each) => each.key === element("sort-by").value);
  sortBy(element("sort-by").value, !!column && !column.number);
});
for (const id of ["search", "throttled", "sort-of"]) element(id).addEventListener("input", () => drawUse(paused));
element("find-words").addEventListener("input", refresh);
element("new-quota").addEventListener("click", () => openDetail({}, null));
element("pause").addEventListener("click", () => {
  paused = !paused;
  element("pause").setAttribute("aria-pressed", String(paused));
  element("pause").textContent = paused ? "Go on" : "Pause";
  drawUse(paused);
});
element("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = element("token").value;
  sessionStorage.setItem("token", token);
  element("login").hidden = true;
  refresh();
});
window.addEventListener("hashchange", showView);
drawColumns();
startDetail();
showView();
follow();
