"use strict";
// The table of the buckets in use, with their history of half an hour.

const MOST_ROWS = 200;
const COLUMNS = [
  { key: "kind", name: "Quota" },
  { key: "entity", name: "Entity" },
  { key: "broker", name: "Broker" },
  { key: "limit", name: "Limit/s", number: true },
  { key: "share", name: "Share/s", number: true },
  { key: "rate", name: "Now/s", number: true },
  { key: "used", name: "Used", number: true },
  { key: "history", name: "Half an hour", unsorted: true },
  { key: "waited", name: "Waited", number: true },
  { key: "state", name: "State" },
];
const SORTS = {
  all: ["All", () => true],
  tenants: ["Users and client ids", (each) => !!(each.parts.user || each.parts["client-id"])],
  topics: ["Topics", (each) => !!each.parts.topic],
  addresses: ["Addresses", (each) => !!each.parts.ip],
  mutations: ["Mutations", (each) => each.kind === "controller_mutation_rate"],
  replication: ["Replication and moves", (each) => each.kind.includes("replication")],
};

let rows = [];
let histories = new Map(); // by row: parts of the limit, oldest first
let sortKey = "";
let ascending = false;
let updated = null;

function rowOf(bucket) {
  let state = bucket.throttled ? "throttled" : "";
  if (bucket.mode === "observe") state = state ? "would be throttled" : "observed";
  if (bucket.replicas_behind) state += `${state ? ", " : ""}${bucket.replicas_behind} replicas behind`;
  if (bucket.since_seconds) state += ` for ${duration(bucket.since_seconds)}`;
  if (bucket.too_low) state += `${state ? ", " : ""}too low for replicas to get in sync`;
  return {
    id: rowId(bucket), kind: bucket.kind, parts: bucket.entity, node: bucket.broker,
    entity: entityText(bucket.entity), broker: bucket.broker === null ? "all" : String(bucket.broker),
    limit: bucket.limit, share: bucket.share === bucket.limit ? null : bucket.share, rate: bucket.rate,
    used: bucket.limit > 0 ? Math.max(bucket.rate, 0) / bucket.limit : 1,
    waited: bucket.throttle_seconds, state, throttled: bucket.throttled,
  };
}

function rowId(bucket) {
  return JSON.stringify([bucket.kind, bucket.broker, bucket.entity]);
}

function duration(seconds) {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
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
  const [, belongs] = SORTS[element("sort-of").value] || SORTS.all;
  return rows
    .filter((each) => (!only || each.throttled) && belongs(each) && words.every((word) => `${each.kind} ${each.entity}`.toLowerCase().includes(word)))
    .sort(compare);
}

function cell(column, text) {
  const td = make("td", column.number ? `number ${column.key}` : column.key, text);
  td.dataset.name = column.name;
  return td;
}

function entityCell(column, each) {
  const td = cell(column, "");
  const button = make("button", "link", each.entity || (each.node === null ? "all" : `broker ${each.node}`));
  button.type = "button";
  button.addEventListener("click", () => openDetail(each.parts, each.node, each.kind));
  td.append(button);
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
  const points = histories.get(each.id) || [];
  const known = points.map((used, place) => [place, used]).filter(([, used]) => used !== null);
  if (known.length < 2) return td;
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawn.setAttribute("viewBox", "0 0 100 20");
  drawn.setAttribute("preserveAspectRatio", "none");
  drawn.setAttribute("role", "img");
  const most = Math.max(...known.map(([, used]) => used));
  drawn.setAttribute("aria-label", `at most ${Math.round(most * 100)}% in the last half hour`);
  const highest = Math.max(1.25, most);
  const y = (used) => 19 - (used / highest) * 18;
  const limit = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of [["x1", 0], ["x2", 100], ["y1", y(1)], ["y2", y(1)]]) limit.setAttribute(name, value);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  const x = (place) => (place / Math.max(points.length - 1, 1)) * 100;
  line.setAttribute("points", known.map(([place, used]) => `${x(place).toFixed(1)},${y(used).toFixed(1)}`).join(" "));
  drawn.append(limit, line);
  td.append(drawn);
  return td;
}

function drawUse(paused) {
  const found = chosen();
  const shown = found.slice(0, MOST_ROWS);
  replaceRows(element("rows"), shown.map((each) => {
    const tr = document.createElement("tr");
    tr.dataset.id = each.id;
    tr.classList.toggle("throttled", each.throttled);
    tr.append(...COLUMNS.map((column) => {
      if (column.key === "entity") return entityCell(column, each);
      if (column.key === "used") return usedCell(column, each);
      if (column.key === "history") return historyCell(column, each);
      if (["limit", "share", "rate"].includes(column.key)) return cell(column, amount(each.kind, each[column.key]));
      if (column.key === "waited") return cell(column, `${each.waited.toFixed(1)} s`);
      return cell(column, each[column.key]);
    }));
    return tr;
  }));
  const throttled = rows.filter((each) => each.throttled).length;
  const more = found.length > shown.length ? `; the first ${shown.length} of ${found.length} are shown` : "";
  element("summary").textContent = updated === null ? "" :
    `${rows.length} buckets, ${throttled} throttled${more}; ${paused ? "paused at" : "at"} ${updated.toLocaleTimeString()}`;
  for (const th of element("columns").children) {
    if (th.dataset.key === sortKey) th.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    else th.removeAttribute("aria-sort");
  }
}

function takeHistory(body) {
  histories = new Map(body.series.map((series) => [rowId({ ...series }), series.used]));
}

function sortBy(key, upwards) {
  [sortKey, ascending] = [key, upwards];
  element("sort-by").value = key;
  drawUse(paused);
}

function drawColumns() {
  for (const column of COLUMNS) {
    const th = make("th", column.number ? "number" : "");
    th.scope = "col";
    th.dataset.key = column.key;
    if (column.unsorted) {
      th.textContent = column.name;
    } else {
      const button = make("button", "", column.name);
      button.type = "button";
      button.addEventListener("click", () => sortBy(column.key, sortKey === column.key ? !ascending : !column.number));
      th.append(button);
    }
    element("columns").append(th);
  }
  // A phone shows no heads of columns.
  const sortable = COLUMNS.filter((column) => !column.unsorted);
  element("sort-by").append(new Option("Throttled, then used", ""), ...sortable.map((column) => new Option(column.name, column.key)));
  element("sort-of").append(...Object.entries(SORTS).map(([value, [name]]) => new Option(name, value)));
}
