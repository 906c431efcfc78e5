"use strict";
// The process: its connections, the instances that share limits, and their shares.

function tableRow(cells) {
  const tr = document.createElement("tr");
  tr.append(...cells.map(([name, value, className]) => {
    const td = make("td", className, String(value));
    td.dataset.name = name;
    return td;
  }));
  return tr;
}

async function updateProcess() {
  const process = await readJson("api/overview");
  const open = process.listeners.reduce((sum, each) => sum + each.connections, 0);
  const facts = [
    ["Version", `${process.version}, ${process.compiled ? "compiled" : "interpreted"}`],
    ["Workers", process.workers],
    ["Connections", `${open} of ${process.max_connections}`],
  ];
  if (process.sharing) {
    facts.push(["Processes that share limits", process.sharing.instances]);
    if (process.sharing.instances > 1 || process.sharing.degraded) facts.push(["Age of what is known of the others", `${process.sharing.lag_seconds.toFixed(1)} s${process.sharing.degraded ? "; the topic is unavailable" : ""}`]);
  }
  element("process-facts").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", String(value))]));
  element("listeners").replaceChildren(...process.listeners.map((each) => tableRow([
    ["Listener", each.name + (each.replication ? " (replication)" : ""), "entity"],
    ["Open", each.connections, "number"], ["Muted by quotas", each.muted, "number"], ["Not read", each.paused, "number"],
  ])));
  element("sharing").hidden = !process.sharing;
  if (process.sharing) drawShares(await readJson("api/shares"), process.sharing.names);
}

// `own`: the instances of this proxy, one for each worker.
function drawShares(found, own) {
  const alone = found.instances.length === 1 && found.instances[0].processes === 1;
  element("instances-summary").textContent = alone
    ? "One process: it has the whole of each limit. With more, each limit is shared."
    : `Instances that share limits: ${found.instances.length}`;
  element("shares").closest("table").hidden = alone;
  element("instances").replaceChildren(...found.instances.map((each) => tableRow([
    ["Instance", each.instance + (own.includes(each.instance) ? " (this proxy)" : ""), "entity"],
    ["Processes", each.processes, "number"], ["Last report", `${each.age_seconds.toFixed(1)} s ago`, "number"],
  ])));
  const more = found.total > found.limits.length ? `; the first ${found.limits.length} are shown` : "";
  element("shares-summary").textContent = `${found.total} limits in use${more}. Each process has an equal share of every other limit.`;
  // In a steady order: the proxy lists the limit first that was used last.
  const limits = found.limits.sort((one, other) => limitName(one).localeCompare(limitName(other), undefined, { numeric: true }));
  element("shares").replaceChildren(...limits.map((each) => tableRow([
    ["Quota", each.kind, "kind"], ["Entity", entityText(each.entity) || `broker ${each.broker}`, "entity"],
    ["Broker", each.broker === null ? "all" : each.broker, "broker"], ["Limit/s", amount(each.kind, each.limit), "number"],
    ["Shares/s", sharesText(each), "layers"],
  ])));
}

function limitName(limit) {
  return `${limit.kind} ${entityText(limit.entity)} ${limit.broker}`;
}

// `proxy-a 768 KiB, proxy-b 256 KiB`, the largest first.
function sharesText(limit) {
  const shares = Object.entries(limit.shares).sort(([, one], [, other]) => other - one);
  return shares.map(([instance, share]) => `${instance} ${amount(limit.kind, share)}`).join(", ");
}
