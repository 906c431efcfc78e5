"use strict";
// Shows /api/quotas and /readyz. Whatever comes from clients is set as text, never as HTML.

const INTERVAL_MS = 2000;
const TIMEOUT_MS = 10000;
const MOST_ROWS = 200;
const HISTORY_MS = 30 * 60 * 1000;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const COLUMNS = [
  { key: "kind", name: "Quota" },
  { key: "entity", name: "Entity" },
  { key: "broker", name: "Broker" },
  { key: "limit", name: "Limit/s", number: true },
  { key: "share", name: "Share/s", number: true },
  { key: "rate", name: "Now/s", number: true },
  { key: "used", name: "Used", number: true },
  { key: "history", name: "History", unsorted: true },
  { key: "waited", name: "Waited", number: true },
  { key: "state", name: "State" },
];

const element = (id) => document.getElementById(id);
const history = new Map(); // by row: [ms, used] while the page is open, of the rows that were shown
let rows = [];
let sortKey = "";
let ascending = false;
let paused = false;
let updated = null;
let token = sessionStorage.getItem("token") || "";

function amount(kind, value) {
  if (value === null || value === undefined) return "";
  if (!kind.includes("byte") && !kind.includes("replication")) return Number(value.toPrecision(4)).toString();
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
  return `${Number(value.toPrecision(4))} ${UNITS[unit]}`;
}

function row(bucket) {
  const names = Object.entries(bucket.entity).map(([part, name]) => `${part} ${name}`);
  let state = bucket.throttled ? "throttled" : "";
  if (bucket.mode === "observe") state = state ? "would be throttled" : "observed";
  if (bucket.too_low) state = `${state ? state + ", " : ""}too low for replicas to get in sync`;
  const entity = names.join(", ");
  return {
    id: JSON.stringify([bucket.kind, bucket.broker, bucket.entity]),
    kind: bucket.kind, entity, broker: bucket.broker === null ? "all" : String(bucket.broker),
    limit: bucket.limit, share: bucket.share === bucket.limit ? null : bucket.share, rate: bucket.rate,
    used: bucket.limit > 0 ? Math.max(bucket.rate, 0) / bucket.limit : 1,
    waited: bucket.throttle_seconds, state, throttled: bucket.throttled,
  };
}

function compare(one, other) {
  if (!sortKey) return other.throttled - one.throttled || other.used - one.used;
  const [a, b] = [one[sortKey] ?? -1, other[sortKey] ?? -1];
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  return ascending ? order : -order;
}

function chosen() {
  const words = element("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const only = element("throttled").checked;
  return rows
    .filter((each) => (!only || each.throttled) && words.every((word) => `${each.kind} ${each.entity}`.toLowerCase().includes(word)))
    .sort(compare);
}

function cell(column, text) {
  const td = document.createElement("td");
  td.className = column.number ? `number ${column.key}` : column.key;
  td.dataset.name = column.name;
  td.textContent = text;
  return td;
}

function usedCell(column, each) {
  const td = cell(column, "");
  const meter = document.createElement("meter");
  meter.max = 1; meter.high = 0.8; meter.optimum = 0; meter.value = Math.min(each.used, 1);
  const percent = `${Math.round(each.used * 100)}%`;
  meter.setAttribute("aria-label", `used ${percent}`);
  td.append(meter, ` ${percent}`);
  return td;
}

function historyCell(column, each) {
  const td = cell(column, "");
  const points = history.get(each.id) || [];
  if (points.length < 2) return td;
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawn.setAttribute("viewBox", "0 0 100 20");
  drawn.setAttribute("preserveAspectRatio", "none");
  drawn.setAttribute("aria-hidden", "true");
  const highest = Math.max(1.25, ...points.map(([, used]) => used));
  const end = points[points.length - 1][0];
  const span = Math.max(end - points[0][0], 60000);
  const x = (at) => 100 - ((end - at) / span) * 100;
  const y = (used) => 19 - (used / highest) * 18;
  const limit = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of [["x1", 0], ["x2", 100], ["y1", y(1)], ["y2", y(1)]]) limit.setAttribute(name, value);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", points.map(([at, used]) => `${x(at).toFixed(1)},${y(used).toFixed(1)}`).join(" "));
  drawn.append(limit, line);
  td.append(drawn);
  return td;
}

function draw() {
  const found = chosen();
  const shown = found.slice(0, MOST_ROWS);
  element("rows").replaceChildren(...shown.map((each) => {
    const tr = document.createElement("tr");
    tr.classList.toggle("throttled", each.throttled);
    tr.append(...COLUMNS.map((column) => {
      if (column.key === "used") return usedCell(column, each);
      if (column.key === "history") return historyCell(column, each);
      if (["limit", "share", "rate"].includes(column.key)) return cell(column, amount(each.kind, each[column.key]));
      if (column.key === "waited") return cell(column, `${each.waited.toFixed(1)} s`);
      return cell(column, each[column.key]);
    }));
    return tr;
  }));
  const throttled = rows.filter((each) => each.throttled).length;
  const more = found.length > shown.length ? `; ${found.length - shown.length} more match the search` : "";
  element("summary").textContent = updated === null ? "" :
    `${rows.length} buckets, ${throttled} throttled${more}; ${paused ? "paused at" : "at"} ${updated.toLocaleTimeString()}`;
  for (const th of element("columns").children) {
    if (th.dataset.key === sortKey) th.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    else th.removeAttribute("aria-sort");
  }
}

function remember(now) {
  const kept = new Set(chosen().slice(0, MOST_ROWS).map((each) => each.id));
  for (const id of history.keys()) if (!kept.has(id)) history.delete(id);
  for (const each of rows) {
    if (!kept.has(each.id)) continue;
    const points = history.get(each.id) || [];
    points.push([now, each.used]);
    while (points.length && points[0][0] < now - HISTORY_MS) points.shift();
    history.set(each.id, points);
  }
}

function showState(text, ready, remarks) {
  element("state").textContent = text;
  element("state").className = ready ? "ready" : "problem";
  element("problems").replaceChildren(...remarks.map((remark) => {
    const li = document.createElement("li");
    li.textContent = remark;
    return li;
  }));
}

async function read(page) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return fetch(page, { headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
}

async function update() {
  const [quotas, readiness] = await Promise.all([read("api/quotas"), read("readyz")]);
  const state = await readiness.json();
  showState(state.ready ? "ready" : "not ready", state.ready, [...(state.problems || []), ...(state.warnings || [])]);
  element("login").hidden = quotas.status !== 401;
  if (quotas.status === 401) {
    element("login-problem").textContent = token ? "The proxy does not accept this token." : "";
    return;
  }
  if (!quotas.ok) throw new Error(`api/quotas responds ${quotas.status}`);
  rows = (await quotas.json()).quotas.map(row);
  updated = new Date();
  remember(updated.getTime());
  draw();
}

async function follow() {
  if (!paused && !document.hidden) {
    try {
      await update();
    } catch (error) {
      showState("The proxy does not respond; the table shows the last response.", false, []);
    }
  }
  setTimeout(follow, INTERVAL_MS);
}

for (const column of COLUMNS) {
  const th = document.createElement("th");
  th.scope = "col";
  th.dataset.key = column.key;
  if (column.number) th.className = "number";
  if (column.unsorted) {
    th.textContent = column.name;
  } else {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column.name;
    button.addEventListener("click", () => {
      ascending = sortKey === column.key ? !ascending : !column.number;
      sortKey = column.key;
      draw();
    });
    th.append(button);
  }
  element("columns").append(th);
}
element("filter").addEventListener("submit", (event) => event.preventDefault());
element("search").addEventListener("input", draw);
element("throttled").addEventListener("change", draw);
element("pause").addEventListener("click", () => {
  paused = !paused;
  element("pause").setAttribute("aria-pressed", String(paused));
  element("pause").textContent = paused ? "Go on" : "Pause";
  draw();
});
element("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = element("token").value;
  sessionStorage.setItem("token", token);
  update().catch(() => {});
});
follow();
