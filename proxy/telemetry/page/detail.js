"use strict";
// Why a quota applies, what each layer says, and the form that changes a quota.

const TYPES = {
  user: ["User"],
  "client-id": ["Client id"],
  "user, client-id": ["User", "Client id"],
  ip: ["Address or network"],
  topic: ["Topic"],
  broker: ["Broker"],
};
let names = {}; // the quotas that can be set, by the sort of entity
let detail = null; // the entity that is shown
let opener = null; // the row that was selected
let filled = {}; // by part: its name, and what a field shows of it, which has no line breaks

// The question of /api/explain about a bucket's entity.
function question(parts, node) {
  const asked = new URLSearchParams();
  if (parts.topic) asked.set("topic", parts.topic);
  else if (parts.ip) asked.set("ip", parts.ip);
  else if (parts.user || parts["client-id"]) {
    for (const part of ["user", "client-id"]) if (parts[part]) asked.set(part, parts[part]);
  } else if (node !== null && node !== undefined) asked.set("broker", String(node));
  else return null;
  return asked;
}

// Shows an entity to a person who has selected it, maybe in a row far below.
async function openDetail(parts, node, quota) {
  const tr = document.activeElement.closest("tr");
  opener = tr && { body: tr.parentElement, id: tr.dataset.id };
  const shown = showDetail(parts, node, quota);
  element("detail-title").scrollIntoView({ block: "nearest" });
  element("detail-title").focus({ preventScroll: true });
  return shown;
}

function closeDetail() {
  element("detail").hidden = true;
  detail = null;
  if (opener) focusRow(opener.body, opener.id, false);
}

async function showDetail(parts, node, quota) {
  const asked = question(parts, node);
  const entity = asked === null ? {} : Object.fromEntries(asked);
  detail = { parts, node };
  element("detail").hidden = false;
  element("detail-title").textContent = entityText(entity) || "All";
  element("detail-note").textContent = "";
  element("detail-quotas").replaceChildren();
  fillForm(entity, quota);
  if (asked === null) return;
  try {
    const { quotas: explained, note } = await readJson(`api/explain?${asked}`);
    element("detail-note").textContent = note ? `${note[0].toUpperCase()}${note.slice(1)}.` : "";
    element("detail-quotas").replaceChildren(...explained.map(explanation));
    if (!explained.length) element("detail-note").textContent = "No quota can apply.";
  } catch (error) {
    element("detail-note").textContent = error.message;
  }
}

function explanation(quota) {
  const block = make("div", "explained");
  if (quota.exempt) {
    block.append(make("p", "", "Exempt from all quotas (quotas.exempt)."));
    return block;
  }
  const has = quota.limit !== null && quota.limit !== undefined;
  const title = make("h3", "", quota.quota);
  const from = quota.entity ? ` of ${entityText(quota.entity)}` : has ? " by default" : "";
  const mode = quota.mode === "observe" ? ", only observed" : "";
  const scope = quota.scope === "cluster" ? ", over the cluster" : "";
  block.append(title, make("p", has ? "applies" : "", has ? `${amount(quota.quota, quota.limit)}${from}${scope}${mode}` : "no limit"));
  const list = make("ol", "");
  for (const candidate of quota.candidates) {
    const wins = quota.entity && entityText(candidate.entity) === entityText(quota.entity);
    const said = candidate.values.map((layer) => layerText(quota.quota, layer)).join("; otherwise ");
    const item = make("li", wins ? "wins" : "", `${entityText(candidate.entity)}: ${said || "set under another name of this entity"}`);
    list.append(item);
  }
  if (quota.callback) block.append(make("p", "", "The callback of quotas.callback is asked first."));
  if (quota.candidates.length) block.append(list);
  return block;
}

function typeOf(entity) {
  const type = Object.keys(entity).filter((part) => part !== "partition").join(", ");
  return TYPES[type] ? type : "user";
}

function fillForm(entity, quota) {
  const type = typeOf(entity);
  element("change-type").value = type;
  drawForm();
  filled = {};
  for (const [part, field] of fields(type)) {
    field.value = entity[part] || "";
    filled[part] = { name: entity[part] || "", shown: field.value };
  }
  if (quota && [...element("change-quota").options].some((each) => each.value === quota)) element("change-quota").value = quota;
  element("change-value").value = element("change-end").value = element("change-result").textContent = "";
}

// The parts of a type of entity, with their fields.
function fields(type) {
  return type.split(", ").map((part, place) => [part, element(place ? "change-second" : "change-first")]);
}

function drawForm() {
  const type = element("change-type").value;
  const labels = TYPES[type];
  element("change-first-label").firstElementChild.textContent = labels[0];
  element("change-second-label").firstElementChild.textContent = labels[1] || "";
  element("change-second-label").hidden = labels.length < 2;
  element("change-second").required = labels.length > 1;
  element("change-first").placeholder = element("change-second").placeholder = "<default>";
  const known = names[RESOURCES.includes(type) || type === "ip" ? type : "client"] || [];
  element("change-quota").replaceChildren(...known.map((name) => new Option(name, name)));
}

function changeOf(action) {
  const type = element("change-type").value;
  // A name that nobody has edited keeps its spaces and line breaks.
  const entity = Object.fromEntries(fields(type).map(([part, field]) =>
    [part, filled[part] && filled[part].shown === field.value ? filled[part].name : field.value.trim()]));
  const quota = element("change-quota").value;
  const change = { entity, values: { [quota]: null } };
  if (action === "file") return { ...change, back_to_file: true };
  const end = element("change-end").value;
  if (end) change.expires_at_ms = new Date(end).getTime();
  if (action === "remove") return change;
  const text = element("change-value").value.trim();
  if (!text) throw new Error("Enter a value.");
  const number = Number(text);
  // The proxy responds to a value with a unit with the number to write.
  change.values[quota] = RESOURCES.includes(type) || !Number.isFinite(number) ? text : number;
  return change;
}

async function submitChange(event) {
  event.preventDefault();
  const result = element("change-result");
  result.className = "";
  result.textContent = "Changing …";
  try {
    const change = changeOf(event.submitter ? event.submitter.value : "set");
    await sendChange(change);
    const shown = `${entityText(change.entity)}: changed`;
    await showDetail(change.entity, null, Object.keys(change.values)[0]);
    result.className = "done";
    result.textContent = shown;
    refresh();
  } catch (error) {
    result.className = "problem";
    result.textContent = error.message;
  }
}

function startDetail() {
  element("change-type").append(...Object.keys(TYPES).map((type) => new Option(type, type)));
  element("change-type").addEventListener("change", drawForm);
  element("change").addEventListener("submit", submitChange);
  element("detail-close").addEventListener("click", closeDetail);
  element("detail").addEventListener("keydown", (event) => { if (event.key === "Escape") closeDetail(); });
}
