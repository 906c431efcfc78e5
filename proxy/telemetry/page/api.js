"use strict";
// Requests to the admin port, and texts. Whatever comes from clients is set as text, never as HTML.

const TIMEOUT_MS = 10000;
const CHANGE_TIMEOUT_MS = 40000;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const RESOURCES = ["topic", "broker"];

const element = (id) => document.getElementById(id);
let token = sessionStorage.getItem("token") || "";

async function read(page) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return request(page, { headers, cache: "no-store" }, TIMEOUT_MS);
}

// The response; throws an Error with a sentence instead of the browser's own words.
async function request(page, options, timeout) {
  try {
    return await fetch(page, { ...options, signal: AbortSignal.timeout(timeout) });
  } catch (error) {
    const late = error.name === "TimeoutError";
    throw new Error(late ? `The proxy does not respond within ${timeout / 1000} s` : "The proxy cannot be reached");
  }
}

// The JSON of a page; throws an Error with the proxy's reason.
async function readJson(page) {
  const response = await read(page);
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) askForToken(token ? "The proxy does not accept this token." : "");
  if (!response.ok) throw new Error(body.error || `${page} responds ${response.status}`);
  return body;
}

async function sendChange(change) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await request("api/change", { method: "POST", headers, body: JSON.stringify(change) }, CHANGE_TIMEOUT_MS);
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) {
    askForToken(token ? "The proxy does not accept this token." : "A change needs the token.");
    element("token").focus();
    throw new Error("Nothing has changed. Enter the token above, and send the change again.");
  }
  if (!response.ok) throw new Error(body.error || `the proxy responds ${response.status}`);
}

function askForToken(problem) {
  element("login").hidden = false;
  element("login-problem").textContent = problem;
}

function isBytes(quota) {
  return quota.includes("byte") || quota.includes("replication");
}

function amount(quota, value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string" && !/^-?\d+$/.test(value)) return value;
  value = Number(value);
  if (!isBytes(quota)) return Number(value.toPrecision(4)).toString();
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
  return `${Number(value.toPrecision(4))} ${UNITS[unit]}`;
}

function entityText(entity) {
  return Object.entries(entity).map(([part, name]) => `${part} ${nameText(name)}`).join(", ");
}

// A name, quoted if it could be taken for another one: by a comma, or by spaces and other characters that do not show.
function nameText(name) {
  const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
  const text = String(name);
  if (text && !/^["\s]|\s$|\s\s|,/.test(text) && text.search(unseen) < 0) return text;
  return JSON.stringify(text).replace(unseen, (each) => `\\u{${each.codePointAt(0).toString(16)}}`);
}

// A value of one layer: `1 MiB by tools until 12/1/2026, 1:00:00 AM`.
function layerText(quota, layer) {
  const value = layer.value === undefined || layer.value === null ? "no limit" : amount(quota, layer.value);
  const until = layer.expires_at_ms ? ` until ${new Date(layer.expires_at_ms).toLocaleString()}` : "";
  return `${value} ${layer.from === "file" ? "in the file" : "by tools"}${until}`;
}

function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Replaces the rows of a table. A row that has the focus keeps it.
function replaceRows(body, trs) {
  const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr").dataset.id : "";
  body.replaceChildren(...trs);
  if (focused) focusRow(body, focused, true);
}

function focusRow(body, id, preventScroll) {
  const tr = [...body.children].find((each) => each.dataset.id === id);
  if (tr) tr.querySelector("button").focus({ preventScroll });
}
