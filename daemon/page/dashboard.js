/* dashboard.js - the dashboard: it asks what `topt client` asks, and draws what it is answered.
 *
 * Nothing of a question is written down here but how its commonest fields are called: which there are, of what
 * kind and for which endpoint comes from openapi.json.  All addresses are relative, so that a site's proxy may
 * serve this below a path of its own. */
"use strict";

const $ = id => document.getElementById(id);
const SVG = ["svg", "path", "line", "circle", "rect", "text", "title", "g"];
function el(name, attributes, ...children) {
  const e = SVG.includes(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

/* ---- quantities as people write them: three digits, units ---------------------------------- */

const GIB = 2 ** 30;
const digits = x => x >= 1000 ? Math.round(x / 10 ** (Math.floor(Math.log10(x)) - 2)) * 10 ** (Math.floor(Math.log10(x)) - 2) : Number(x.toPrecision(3));
const whole = x => x.toLocaleString("en");
const count = x => x > 0 ? digits(x).toLocaleString("en") : "?";
const bytes = x => x === undefined ? "?" : x >= GIB ? digits(x / GIB) + " GiB" : x >= 2 ** 20 ? digits(x / 2 ** 20) + " MiB" : x >= 1024 ? digits(x / 1024) + " KiB" : whole(x) + " B";
const time = ns => ns >= 1e9 ? whole(digits(ns / 1e9)) + " s" : ns >= 1e6 ? digits(ns / 1e6) + " ms" : digits(ns / 1e3) + " µs";
const many = (n, what) => `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
const parameters = n => n >= 1e12 ? digits(n / 1e12) + " T" : n >= 1e9 ? digits(n / 1e9) + " B" : n >= 1e6 ? digits(n / 1e6) + " M" : whole(n);
const when = s => new Date(s * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
const lasts = s => s >= 172800 ? many(Math.floor(s / 86400), "day") : s >= 7200 ? many(Math.floor(s / 3600), "hour") : s >= 120 ? many(Math.floor(s / 60), "minute") : many(Math.floor(s), "second");
const sentence = text => text[0].toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");
const off = (seen, said) => `${seen >= said ? "+" : "−"}${Math.round(Math.abs(100 * (seen / said - 1)))} %`;

/* Cells are [text, class]; 'chosen' on a row makes it bold.  Each cell has its column's name, which stands beside it where
 * the window is too narrow for columns; roles say what such cells still are. */
function table(heads, rows, empty) {
  if (!rows.length) return el("p", { class: "soft" }, empty);
  const cell = tag => ([text, cls], i) => el(tag, { role: tag === "th" ? "columnheader" : "cell", ...(cls ? { class: cls } : {}), ...(tag === "td" && heads[i][0] ? { "data-label": heads[i][0] } : {}) }, text);
  const row = (cells, tag) => el("tr", { role: "row", ...(cells.chosen ? { class: "chosen" } : {}) }, ...cells.map(cell(tag)));
  return el("table", { role: "table" }, el("thead", { role: "rowgroup" }, row(heads, "th")), el("tbody", { role: "rowgroup" }, ...rows.map(r => row(r, "td"))));
}
const facts = list => list.filter(Boolean).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));

/* ---- talking to the server ----------------------------------------------------------------- */

class Refusal extends Error {
  constructor(status, body) {
    const e = (body && body.errors && body.errors[0]) || {};
    super(e.description || `the server answered with status ${status}`);
    this.status = status;
    this.body = body || {};
    this.source = e.source;
  }
}
async function sent(method, path, body, type) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["Content-Type"] = type || "application/json";
  let r;
  try {
    r = await fetch(path, { method, headers, body });
  } catch (error) {
    throw new Error("the server can't be reached: is toptd running, and the tunnel still open?");
  }
  return { status: r.status, body: await r.json().catch(() => null) };
}
async function get(path) {
  const r = await sent("GET", path);
  if (r.status >= 400) throw new Refusal(r.status, r.body);
  return r.body;
}
/* How a task goes, in words. */
function state(task, began) {
  const seconds = Math.round((Date.now() - began) / 1000), p = task.progress;
  if (task.state === "queued")
    return task.ahead ? `queued behind ${whole(task.ahead)}, ${seconds} s` : `queued, next in line, ${seconds} s`;
  const at = p ? [(p.phase || "").replace(/^searching, /, ""), p.of ? `${whole(p.done)} of ${whole(p.of)}` : "", p.best ? `best so far: ${p.best}` : ""].filter(Boolean).join(", ") : "";
  return `searching, ${seconds} s` + (at ? ` (${at})` : "");
}
function give_up(task) {
  asking.tasks.delete(task);
  return sent("DELETE", `v1/tasks/${task}`).catch(() => 0);
}
const STALE = Symbol("another question was asked since");
/* The answer to a question, however long it is searched for.  'turn' is the asking that it belongs to. */
async function answered(reply, turn) {
  const began = Date.now();
  let r = await reply, said = "";
  while (r.status === 202 || (r.body && r.body.task && !r.body.result)) {
    if (turn !== asking.turn) {
      give_up(r.body.task);
      throw STALE;
    }
    const task = r.body.task, before = said;
    said = r.body.state;
    asking.tasks.add(task);
    tell(state(r.body, began), false, said === before);
    r = await sent("GET", `v1/tasks/${task}?wait_ms=900`);
    if (r.status >= 400 || r.body.result) asking.tasks.delete(task);
    if (r.status >= 400) throw new Refusal(r.status, r.body);
  }
  if (turn !== asking.turn) throw STALE;
  if (r.body && r.body.task) r = { status: r.body.status, body: r.body.result };
  if (r.status >= 400) throw new Refusal(r.status, r.body);
  return r.body;
}
const plan = (question, turn) => answered(sent("POST", "v1/plan", JSON.stringify({ ...question, wait_ms: 400 })), turn);
function ofModel(what, question, turn, more) {
  const taken = api.taken[what], query = new URLSearchParams({ ...more, wait_ms: 400 });
  for (const [k, v] of Object.entries(question)) if (taken.has(k) && !(more && k in more)) query.set(k, v);
  return answered(sent("GET", `v1/models/${encodeURIComponent(question.model_id)}/${what}?${query}`), turn);
}

/* ---- the question's fields ----------------------------------------------------------------- */

const COMMON = {
  hw: "hardware", batch: "global batch, samples", seq: "sequence length, tokens", framework: "framework", precision: "precision", train: "trained parameters",
  optimizer: "optimizer", memory: "memory per GPU", gpus: "number of GPUs", max_gpus: "GPUs at most", min_efficiency: "least efficiency, %",
  tokens: "tokens of the training", samples: "samples of the training", price: "price of a GPU-hour"
};
/* Shorter words, for where the field is empty. */
const EMPTY = { gpus: "the fewest that fit", memory: "the whole GPU's", max_gpus: "all of the cluster", min_efficiency: "none", tokens: "1T: for days and cost", samples: "of images", price: "the site's, or none" };
const EXPERTS = {
  mode: "what to find", counts: "numbers of GPUs tried", gpus_per_node: "GPUs per node", gradients: "type of gradients", accounting: "what memory counts",
  overlap: "communication behind computation", eager: "not fused", space: "search space", blocks: "repeated blocks", factors: "searched beside splits",
  micro_batches: "micro-batches", tensor_parallel: "tensor parallelism", sequence_parallel: "sequence parallelism", sequence_splits: "sequences split over GPUs",
  pin: "fixed splits", algorithm: "search algorithm", epsilon: "allowed loss of time", max_table_bytes: "memory of the search", currency: "currency", attention: "attention kernel",
  groups: "groups of unlike GPUs", mtp: "MTP modules", pipeline: "pipeline stages", virtual_stages: "chunks of a stage", schedule: "schedule of stages", shard_ranks: "ranks that shard",
  context: "context parallelism", expert: "expert parallelism", expert_tensor: "ranks that split an expert", degrees: "fixed degrees", as_is: "a run that exists", dispatch: "tokens to experts by"
};
const labelOf = name => COMMON[name] || EXPERTS[name] || name.replace(/_/g, " ");
/* A message of the server, in the words of the form: its fields are called min_efficiency there, or --min-efficiency. */
const optionOf = text => (text.match(/--([a-z]+(?:-[a-z]+)*)/) || ["", ""])[1].replace(/-/g, "_");
const inWords = text => text.replace(" for a share; give 0 to 1, or 0% to 100%", "; give 0 to 100 %")
  .replace(/\b[a-z]+(?:_[a-z]+)+\b|--[a-z]+(?:-[a-z]+)*/g, name => ((field => field in api.fields ? `“${labelOf(field)}”` : name)(name.replace(/^--/, "").replace(/-/g, "_"))));
/* Asked for elsewhere on the page, or another name of a field that is there. */
const APART = ["model", "model_id", "name", "wait_ms", "memory_bytes"];
const api = { fields: {}, taken: {}, paths: {} };

/* The description is "WHAT IT IS; else WHAT IS TAKEN". */
function described(schema) {
  const text = schema.description || "", at = text.lastIndexOf("; else ");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 7)];
}
function control(name, schema, other) {
  const id = "f-" + name;
  if (schema.enum || schema.type === "boolean") {
    const choices = schema.enum ? schema.enum.map(w => [w, w]) : [["true", "yes"], ["false", "no"]];
    return el("select", { id, name }, el("option", { value: "" }, "automatic"), ...choices.map(([value, text]) => el("option", { value }, text)));
  }
  const input = el("input", { id, name, placeholder: other, type: "text", spellcheck: "false" });
  if (schema.type === "integer") input.inputMode = "numeric";
  if (schema.type === "number") input.inputMode = "decimal";
  return input;
}
function field(name, schema) {
  const [help, other] = described(schema), input = name === "hw" ? el("select", { id: "f-hw", name }) : control(name, schema, EMPTY[name] || other);
  const label = labelOf(name), words = help.replace(/^advanced: /, "");
  input.title = sentence(words || label) + (other ? ` If empty: ${other}.` : "");
  return el("div", { class: "field", "data-name": name }, el("label", { for: "f-" + name }, label), input,
    COMMON[name] ? null : el("p", { class: "hint", id: "h-" + name }, words));
}
function buildForm(doc) {
  const names = Object.keys(doc.components.schemas.Question.properties).filter(n => !APART.includes(n));
  api.fields = Object.fromEntries(names.map(n => [n, doc.components.schemas.Question.properties[n]]));
  api.paths = doc.paths;
  for (const what of ["curve", "frontier"])
    api.taken[what] = new Set(doc.paths[`/v1/models/{id}/${what}`].get.parameters.map(p => p.name || p.$ref.split("/").pop()));
  $("common").replaceChildren(...Object.keys(COMMON).filter(n => names.includes(n)).map(n => field(n, api.fields[n])));
  $("rest").replaceChildren(...names.filter(n => !(n in COMMON)).map(n => field(n, api.fields[n])));
}
/* As JSON has it; what is no number goes as it stands, for the server to say what is wrong. */
function typed(text, schema) {
  const number = t => /^-?[0-9.]+$/.test(t.trim()) && Number.isFinite(Number(t)) ? Number(t) : t;
  if (schema.type === "boolean") return text === "true";
  if (schema.type === "integer" || schema.type === "number") return number(text.replace(/(\d)[, _](?=\d{3}\b)/g, "$1"));
  if (schema.oneOf) return /,/.test(text) ? text.split(",").filter(t => t.trim()).map(number) : number(text);
  return text.trim();
}
function questionOf(valueOf) {
  const q = {};
  if (valueOf("model_id")) q.model_id = valueOf("model_id");
  for (const [name, schema] of Object.entries(api.fields))
    if (valueOf(name).trim()) q[name] = typed(valueOf(name), schema);
  return q;
}
const read = () => questionOf(name => $("ask").elements[name].value);
/* A question in the words of the form. */
function worded(question, a) {
  const j = a.job || {}, told = ["model_id", "hw", "batch", "seq", "framework", "precision"];
  const size = j.seq > 1 ? `${whole(j.batch)} × ${whole(j.seq)} tokens` : j.batch ? `batch ${whole(j.batch)}` : "";
  const rest = Object.entries(question).filter(([k]) => !told.includes(k)).map(([k, v]) => `${labelOf(k)} ${v}`);
  return [j.model || modelName(question.model_id), size, j.framework_title || question.framework, j.hw || question.hw, j.precision || question.precision, ...rest].filter(Boolean).join(", ");
}
const modelName = id => ([...$("f-model_id").options].find(o => o.value === id) || { textContent: id }).textContent;
function clearErrors() {
  for (const e of document.querySelectorAll(".field .error")) e.remove();
  for (const e of document.querySelectorAll("[aria-invalid]")) {
    e.removeAttribute("aria-invalid");
    e.removeAttribute("aria-describedby");
  }
}
/* Where the field is; false where there is no such field. */
function showError(source, text) {
  const name = source === "model" ? (optionOf(text) in api.fields ? optionOf(text) : "model_id") : source || "";
  const box = document.querySelector(`.field[data-name="${CSS.escape(name)}"]`);
  if (!box) return false;
  const input = box.querySelector("input, select");
  box.append(el("p", { class: "error", id: "e-" + source }, sentence(inWords(text.replace(`${source}: `, "")))));
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-describedby", "e-" + source);
  if (box.closest("#rest")) $("more").open = true;
  input.focus();
  return true;
}
/* 'quietly': not read aloud, as each second of a search. */
function tell(text, bad, quietly) {
  $("note").setAttribute("aria-live", quietly ? "off" : "polite");
  $("note").textContent = text;
  $("note").className = bad ? "bad" : "soft";
}

/* ---- the answer ---------------------------------------------------------------------------- */

function withWords(a) {
  return (a.with || []).map(w => {
    const [name, ...value] = w.ask.replace(/^--/, "").split(" ");
    return name === "gpus" ? `It fits on ${many(w.gpus, "GPU")}.` : `${many(w.gpus, "GPU")} would do with ${labelOf(name.replace(/-/g, "_"))}: ${value.join(" ")}.`;
  }).join(" ");
}
const tokensOf = job => job && job.seq > 1 ? job.seq : 1;
function margin(a) {
  const t = a.band && a.band.time;
  return t ? `-${Math.round(100 - 100 * t.low_ns / a.time_ns)} % to +${Math.round(100 * t.high_ns / a.time_ns - 100)} %` : null;
}
function rests(a) {
  const r = a.band && a.band.time && a.band.time.rests_on_ns, share = x => Math.round(100 * (x || 0) / a.time_ns);
  return r ? `The time is within ${margin(a)}: ${share(r.analytic)} % of it is estimated from data sheets, ` +
    `${share(r.published)} % rests on published rates, ${share(r.scaled)} % is scaled from other groups, ` +
    `${share(r.interpolated)} % lies between measured sizes, ${share(r.measured)} % is measured.` +
    (r.measured + r.interpolated < a.time_ns / 2 ? " Running topt profile on the cluster narrows that." : "") : "";
}
function job(a) {
  const j = a.job;
  if (!j) return [];
  const size = j.seq > 1 ? `${whole(j.batch)} × ${whole(j.seq)} tokens a step` : `${many(j.batch, "sample")} a step`;
  const lines = [el("p", {}, `${j.model} (${parameters(j.parameters)} parameters), ${size}, ${j.precision}, for ${j.framework_title || "topt"} on ${j.hw}`)];
  if ((a.assumed || []).length)
    lines.push(el("p", { class: "soft", id: "assumed" }, "Assumed where nothing was said: " + a.assumed.map(x => `${x.what} ${typeof x.value === "number" ? whole(x.value) : x.value ?? ""}`.trim()).join(", ") + "."));
  return lines;
}
function copyable(name, text, id) {
  const code = el("code", id ? { id } : {}, text), button = el("button", { type: "button", class: "quiet small", "aria-label": `Copy ${name}` }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch (error) { /* not over plain http from afar: leave it selected */
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return el("p", { class: "copy" }, el("span", {}, name), code, button);
}
/* A button that saves what the server has at 'path'; a refusal is said beside it. */
function saves(words, path, file) {
  const button = el("button", { type: "button", class: "quiet small" }, words), said = el("span", { role: "status" });
  button.addEventListener("click", async () => {
    said.textContent = "";
    try {
      const r = await fetch(path, { headers: { Accept: "*/*" } });
      if (!r.ok) throw new Refusal(r.status, await r.json().catch(() => null));
      const a = el("a", { href: URL.createObjectURL(await r.blob()), download: file });
      a.click();
      setTimeout(() => URL.revokeObjectURL(a.href), 10000);
    } catch (error) {
      said.textContent = sentence(inWords(error.message));
    }
  });
  return [button, said];
}
function downloads(id) {
  const path = `v1/plans/${encodeURIComponent(id)}`, script = (api.paths["/v1/plans/{id}/launch"] || {}).get;
  return el("p", { class: "copy" }, ...saves("Download the plan", path, `${id}.json`), ...(script ? saves("Download the job script", `${path}/launch`, `${id}.sh`) : []));
}
function choose(r) {
  const button = el("button", { type: "button", class: "quiet small", "aria-label": `Ask for ${many(r.gpus, "GPU")}` }, "Ask for it");
  button.addEventListener("click", () => {
    const form = $("ask").elements;
    form.min_efficiency.value = r.min_efficiency || "";
    for (const name of ["gpus", "mode"]) if (form[name]) form[name].value = "";
    ask();
  });
  return button;
}
/* Of a whole training: days, GPU-hours and cost of a row, and the heads of these columns. */
const span = h => h >= 48 ? `${count(h / 24)} days` : `${count(h)} hours`;
const money = (x, t) => `${x >= 100 ? count(x) : x.toFixed(2)}${t.currency ? " " + t.currency : ""}`;
const trainingOf = a => a.training || (a.job || {}).training;
const totalHeads = t => t ? [["whole training", "n"], ["its GPU-hours", "n"], ...(t.price ? [["its cost", "n"]] : [])] : [];
const totals = (r, t) => !t ? [] : r.training_hours ? [[span(r.training_hours), "n"], [count(r.training_gpu_hours), "n"], ...(t.price ? [[r.training_cost ? money(r.training_cost, t) : "", "n"]] : [])] : totalHeads(t).map(() => ["", "n"]);
function alternatives(a) {
  const tokens = tokensOf(a.job) > 1, t = trainingOf(a);
  const rows = a.alternatives.map(r => Object.assign([[(r.names || []).join(", ")], [`${whole(r.gpus)} (${many(r.nodes, "node")})`, "n"], [time(r.time_ns), "n"],
    [count(tokens ? r.tokens_per_second : r.samples_per_second), "n"], [count(hours(a.job, r.gpus, r.time_ns, tokens)), "n"], ...totals(r, t), [held(r), "n"],
    [Math.round(100 * r.efficiency) + " %", "n"], [r.strategy, "t"], [r.gpus === a.gpus ? "" : choose(r)]], { chosen: r.gpus === a.gpus }));
  return el("div", {}, el("div", { class: "scroll" }, table([["choice"], ["GPUs", "n"], ["step", "n"], [tokens ? "tokens/s" : "samples/s", "n"],
    [perHours(tokens), "n"], ...totalHeads(t), ["memory per GPU", "n"], ["efficiency", "n"], ["strategy"], [""]], rows, "")), ...notes(a.alternatives));
}
/* GPU-hours of so many samples, or tokens. */
const perHours = tokens => tokens ? "GPU-hours per 1 B tokens" : "GPU-hours per 1 M samples";
const hours = (job, gpus, ns, tokens) => gpus * ns / 3600e9 / (job ? job.batch : 1) * (tokens ? 1e9 / job.seq : 1e6);
/* The memory of a GPU, and whether that is tight. */
const held = p => bytes(p.memory_bytes) + (p.verdict === "tight" ? ", tight" : "");
const range = m => bytes(m.low_bytes) === bytes(m.high_bytes) ? bytes(m.high_bytes) : `${bytes(m.low_bytes)} to ${bytes(m.high_bytes)}`;
const TIGHT = "Tight: with context and libraries a run may take more than the limit. A smaller memory limit asks for a plan with more room.";
const someTight = list => (list || []).some(p => p.verdict === "tight");
const notes = list => [
  ...(someTight(list) ? [el("p", { class: "soft" }, TIGHT)] : []),
  ...((list || []).some(r => (r.names || []).includes("knee")) ? [el("p", { class: "soft" }, "Knee: beyond it each GPU adds less than half of the best speed per GPU.")] : [])];
function speed(a) {
  const j = a.job || { batch: 1 }, tokens = tokensOf(a.job), per = j.batch * tokens * 1e9 / a.time_ns;
  return [
    ["a step", `${time(a.time_ns)}${margin(a) === null ? "" : ` (${margin(a)})`}`],
    [tokens > 1 ? "tokens/s" : "samples/s", count(per)],
    [perHours(tokens > 1), count(hours(a.job, a.gpus, a.time_ns, tokens > 1))],
    a.training_hours ? ["whole training", `${span(a.training_hours)}, ${count(a.training_gpu_hours)} GPU-hours${a.training_cost ? `, ${a.job.training.currency ? "" : "cost "}${money(a.training_cost, a.job.training)}` : ""}`] : null,
    ["memory per GPU at the peak", `${bytes(a.memory_bytes)} of ${bytes(a.memory_limit)}${a.verdict ? ": " + a.verdict : ""}`],
    ...(a.band && a.band.memory ? [["with context and libraries", range(a.band.memory)]] : [])
  ];
}
/* What finished jobs make of the predictions. */
function measured(c) {
  const from = f => `${many(f.jobs, "job")} of ${f.of === "yours" ? "yours" : many(f.users, "user")}`;
  const parts = [["time", c.time], ["memory", c.memory]].filter(([, f]) => f).map(([name, f]) => `${name} ${f.factor} times as predicted on ${from(f)}`);
  const what = [c.time_ns ? `${time(c.time_ns)} a step` : "", c.memory_bytes ? `${bytes(c.memory_bytes)} a GPU` : ""].filter(Boolean).join(", ");
  return el("p", { id: "measured" }, `${what ? `By what finished jobs measured: ${what} (` : "What finished jobs measured ("}${parts.join("; ")}).`);
}
/* A run that exists, beside the plan. */
function besideRun(r, a) {
  const times = r.time_ns / a.time_ns;
  const than = times >= 1.005 ? `The plan is ${digits(times)} times as fast.` : times <= 0.995 ? `It is ${digits(1 / times)} times as fast as the plan.` : "It is as fast as the plan.";
  return el("p", { id: "run" }, `The run as it is: ${r.strategy}. It takes ${time(r.time_ns)} a step and ${bytes(r.memory_bytes)} per GPU (${r.verdict}). ${than}${(r.notes || []).map(n => ` Note: ${n}.`).join("")}`);
}
function show(a) {
  $("said").replaceChildren(...job(a),
    el("p", { class: "big" }, `${many(a.gpus, "GPU")} (${many(a.nodes, "node")} x ${many(a.gpus_per_node, "GPU")})`),
    el("p", {}, sentence(a.strategy)),
    el("p", { id: "why" }, sentence(a.why), " ", withWords(a)),
    ...(a.needs ? [el("p", { class: "bad" }, sentence(a.needs))] : []),
    ...(a.stopped ? [el("p", { class: "bad" }, "The time for a search was up: this is the best that was found until then.")] : []),
    el("dl", { class: "facts" }, ...facts(speed(a))),
    ...(a.as_is ? [besideRun(a.as_is, a)] : []),
    ...(a.correction ? [measured(a.correction)] : []),
    ...(a.alternatives ? [alternatives(a)] : [el("div", { id: "beside" })]),
    copyable("for Slurm", a.slurm ? a.slurm.flags : ""),
    copyable("plan", a.plan_id, "plan"),
    downloads(a.plan_id),
    ...(a.pinned === false ? [el("p", { class: "bad" }, "The server had no room to keep this plan: its number will not be found later.")] : []),
    el("p", { class: "soft" }, rests(a), a.job && a.job.not_searched ? ` Not tried: ${a.job.not_searched}.` : "", a.job && a.job.note ? ` Note: ${a.job.note}.` : ""));
}
/* An answer about several groups of unlike GPUs together: stages that lie on them, or what each takes of the batch and the state. */
const several = a => Boolean(a.choices && !a.group && a.feasible);
function groups(a) {
  const held = r => `${bytes(r.memory_bytes)} of ${bytes(r.memory_limit)}`;
  const rows = a.stages ? a.stages.map((s, i) => [[`stage ${i + 1}`], [s.group], [s.device], [whole(s.gpus), "n"], [many(s.layers, "layer"), "n"], [time(s.busy_ns), "n"], [held(s), "n"]])
    : a.groups.map(g => [[g.name], [g.device], [whole(g.gpus), "n"], [many(g.rows, "sample"), "n"], [time(g.time_ns), "n"], [held(g), "n"], [g.strategy, "t"]]);
  const heads = a.stages ? [["stage"], ["group"], ["GPU"], ["GPUs", "n"], ["layers", "n"], ["busy", "n"], ["memory per GPU", "n"]]
    : [["group"], ["GPU"], ["GPUs", "n"], ["of the batch", "n"], ["step", "n"], ["memory per GPU", "n"], ["strategy"]];
  return el("div", { class: "scroll" }, table(heads, rows, ""));
}
function showGroups(a) {
  const parts = a.slurm ? a.slurm.parts.map(p => `${many(p.nodes, "node")} of ${p.group}`).join(", then ") : "";
  $("said").replaceChildren(...job(a), el("p", { class: "big" }, `${many(a.gpus, "GPU")} of several groups, ${time(a.time_ns)} a step`),
    el("p", { id: "why" }, a.strategy ? sentence(a.strategy) : "Each group trains on its own share of the batch."), groups(a),
    ...(a.correction ? [measured(a.correction)] : []),
    ...(a.plan_id ? [copyable("for Slurm", a.slurm ? a.slurm.flags : ""), el("p", { class: "soft" }, `Parts of a heterogeneous job: ${parts}. Each also needs the partition or the constraint of its nodes, which the job script has a line for.`),
      copyable("plan", a.plan_id, "plan"), downloads(a.plan_id)] : [el("p", { class: "soft" }, `No plan that all groups run together: ${a.no_plan || ""}`)]));
}
function refuse(body) {
  const near = body.nearest;
  $("said").replaceChildren(...job(body), el("p", { class: "big bad" }, body.batches ? "The batch can't be shared" : body.feasible === null ? "Nothing was found that fits" : "It does not fit"),
    el("p", { id: "why" }, sentence(body.why || "")),
    ...(near && body.verdict !== "does not fit" ? [el("p", { id: "nearest" }, `Nearest to fitting: ${many(near.gpus, "GPU")} (${many(near.nodes || 1, "node")}), which would need ${bytes(near.memory_bytes)} each.`)] : []),
    ...(withWords(body) ? [el("p", {}, withWords(body))] : []),
    ...(body.correction ? [measured(body.correction)] : []),
    ...(body.job && body.job.not_searched ? [el("p", { class: "soft" }, `Not tried: ${body.job.not_searched}.`)] : []));
}

/* ---- charts: scales and axes --------------------------------------------------------------- */

/* 1, 2, 5, 10, ...: or of them the tens, where that is too many. */
function ticks(low, high) {
  const all = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) all.push(...[1, 2, 5].map(x => x * 10 ** e));
  const inside = all.filter(x => x >= low && x <= high);
  return inside.length > 8 ? inside.filter(x => x.toExponential()[0] === "1") : inside;
}
/* Round steps from 0. */
function steps(most, about) {
  const raw = most / about, base = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(x => x * base).find(x => x >= raw);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}
const room = box => Math.max(280, Math.floor(box.clientWidth));
function canvas(W, H, name) {
  return el("svg", { viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": name });
}
const label = (svg, x, y, text, more) => svg.append(el("text", { x, y, ...more }, text));
const fold = (text, width) => text.match(new RegExp(`.{1,${width}}(?: |$)|\\S+`, "g")) || [];

/* ---- speed against GPUs, both logarithmic -------------------------------------------------- */

const isPoint = p => p.feasible && p.time_ns > 0;
const shares = p => `${many(p.gpus, "GPU")} can't take equal shares of the batch; of ${p.batches.map(whole).join(" or ")} they can`;
/* Without the long row of counts that the batch is too small for. */
function shown(points) {
  const last = Math.max(0, ...points.filter(isPoint).map(p => p.gpus));
  return points.filter(p => p.gpus <= last || !p.batches);
}
/* Where things are in a chart of these series, of which 'own' is the one that was asked for last. */
function scale(list, own, W) {
  const good = own.points.filter(isPoint), all = list.flatMap(x => x.points.filter(isPoint).map(p => [p.gpus, x.speedOf(p)]));
  const H = !all.length ? 150 : W < 560 ? 300 : 380, L = W < 560 ? 62 : 76, R = 14, T = all.length ? 28 : 8, B = 58;
  const inside = list.flatMap(x => (shown(x.points).length ? shown(x.points) : x.points).map(p => p.gpus)), more = shown(own.points).length < own.points.length; /* room for why */
  const x0 = Math.log2(Math.min(...inside)), most = Math.log2(Math.max(...inside)), last = good.length ? good[good.length - 1].gpus : 0;
  const x1 = Math.max(x0 + 1, more ? Math.max(most, Math.log2(Math.max(1, last)) + 1) : most);
  const each = Math.max(...good.map(p => own.speedOf(p) / p.gpus)), ideal = n => each * n;
  const speeds = all.length ? [...all.map(p => p[1]), ...(last ? [ideal(last)] : [])] : [1, 10];
  const y0 = Math.log2(Math.min(...speeds)) - 0.4, y1 = Math.log2(Math.max(...speeds)) + 0.5;
  return { W, H, L, R, T, B, x0, x1, y0, y1, good, ideal, last, any: all.length > 0, taken: [],
    X: n => L + 12 + (Math.log2(n) - x0) / (x1 - x0) * (W - L - R - 24), Y: v => H - B - (Math.log2(v) - y0) / (y1 - y0) * (H - T - B) };
}
function axes(s, svg, unit) {
  for (const v of s.any ? ticks(2 ** s.y0, 2 ** s.y1) : []) {
    svg.append(el("line", { class: "grid", x1: s.L, x2: s.W - s.R, y1: s.Y(v), y2: s.Y(v) }));
    label(svg, s.L - 8, s.Y(v) + 4, v >= 1e6 ? v / 1e6 + " M" : v >= 1 ? whole(v) : String(Number(v.toPrecision(1))), { "text-anchor": "end" });
  }
  const every = Math.ceil(38 / Math.max(1, s.X(2 ** (Math.ceil(s.x0) + 1)) - s.X(2 ** Math.ceil(s.x0))));
  for (let e = Math.ceil(s.x0); e <= s.x1; e += every) label(svg, s.X(2 ** e), s.H - s.B + 36, whole(2 ** e), { "text-anchor": "middle" });
  label(svg, s.W - s.R, s.H - 4, "GPUs", { "text-anchor": "end" });
  label(svg, 2, 14, s.any ? unit : "");
}
/* A region in which nothing is drawn, and as many lines of why as it has room for. */
function region(s, svg, from, to, cls, text) {
  svg.append(el("rect", { class: cls, x: from, y: s.T, width: Math.max(0, to - from), height: s.H - s.T - s.B }));
  if (to - from > 64)
    fold(text, Math.floor((to - from - 10) / 6.6)).forEach((line, i) => label(svg, from + 8, s.T + 18 + 15 * i, line.trim(), { class: cls === "shade" ? "bad" : "" }));
}
const needed = a => ((a.why || "").match(/: (.*)$/) || [])[1] || "";
/* What is shaded, and why, in words. */
function shade(s, svg, points, a) {
  const first = s.good.length ? s.good[0].gpus : Infinity, heavy = points.filter(p => !isPoint(p) && !p.batches && p.gpus < first);
  const beyond = points.filter(p => p.batches && p.gpus > s.last), near = a.nearest, words = [];
  if (heavy.length) {
    const to = s.good.length ? (s.X(heavy[heavy.length - 1].gpus) + s.X(first)) / 2 : s.W - s.R;
    region(s, svg, s.L, to, "shade", `does not fit${needed(a) ? `: ${needed(a)}` : ""}`);
    const fits = s.good.length ? ` The nearest that fits is ${many(first, "GPU")} (${bytes(s.good[0].memory_bytes)} each).`
      : near ? ` The nearest to fitting is ${many(near.gpus, "GPU")} (${bytes(near.memory_bytes)} each).` : "";
    const last = heavy[heavy.length - 1].gpus;
    words.push(`Shaded: ${heavy.length > 1 ? `up to ${many(last, "GPU")} it does` : `${many(last, "GPU")} ${last === 1 ? "does" : "do"}`} not fit${needed(a) ? ` (${needed(a)})` : ""}.${fits}`);
  }
  if (beyond.length && s.good.length && !points.some(p => !p.batches && p.gpus > s.last)) {
    const why = `a batch of ${whole(a.job ? a.job.batch : 0)} can't be shared by more`;
    region(s, svg, s.X(s.last * 1.15), s.W - s.R, "few", why);
    words.push(`Beyond ${many(s.last, "GPU")} ${why}.`);
  }
  return words;
}
function curves(s, svg, speedOf) {
  const edge = k => s.good.filter(p => p.band).map(p => [s.X(p.gpus), s.Y(speedOf(p) * p.time_ns / p.band.time[k])]);
  const low = edge("high_ns"), high = edge("low_ns"), join = list => list.map(p => p.map(v => v.toFixed(1)).join(" ")).join("L");
  const top = s.T, floor = s.H - s.B, inside = list => list.map(([x, y]) => [x, Math.min(floor, Math.max(top, y))]);
  if (low.length > 1) svg.append(el("path", { class: "band", d: `M${join(inside(high))}L${join(inside(low).reverse())}Z` }));
  if (!s.good.length) return;
  svg.append(el("path", { class: "ideal", d: `M${join([[s.X(s.good[0].gpus), s.Y(s.ideal(s.good[0].gpus))], [s.X(s.last), s.Y(s.ideal(s.last))]])}` }),
    el("path", { class: "line", d: "M" + join(s.good.map(p => [s.X(p.gpus), s.Y(speedOf(p))])) }));
}
/* The counts whose marks leave each other room: named ones first, then powers of two.  The table has all. */
function apart(s, points, named, picked) {
  const first = p => named.has(p.gpus) || p.gpus === picked, round = p => Number.isInteger(Math.log2(p.gpus)), put = [];
  const free = p => put.every(q => isPoint(q) !== isPoint(p) || Math.abs(s.X(q.gpus) - s.X(p.gpus)) >= 14);
  for (const p of [...points.filter(first), ...points.filter(round), ...points])
    if (!put.includes(p) && (first(p) || free(p))) put.push(p);
  return put.sort((p, q) => p.gpus - q.gpus);
}
/* A name beside a point, where no other name is. */
function nameAt(s, svg, x, y, text) {
  const width = 7.4 * text.length, spots = [[x - 12 - width, y - 12], [x + 12, y - 12], [x + 12, y + 20], [x - 12 - width, y + 20], [x - width / 2, y - 28], [x - width / 2, y + 36]];
  const meets = ([l, b]) => l < s.L || l + width > s.W || b < s.T - 8 || b > s.H - s.B - 2 || s.taken.some(([l2, b2, w2]) => l < l2 + w2 && l2 < l + width && Math.abs(b - b2) < 16);
  const [l, b] = spots.find(spot => !meets(spot)) || [Math.min(Math.max(s.L, x - width / 2), s.W - width), y - 12];
  s.taken.push([l, b, width]);
  label(svg, l, b, text, { class: "name" });
}
/* A point that can be chosen: by the mouse, or by the arrow keys and Enter. */
function mark(p, x, y, shape, text) {
  const g = el("g", { class: "pick", tabindex: "-1", role: "button", "aria-label": text, "data-gpus": p.gpus }, el("title", {}, text),
    el("circle", { class: "hit", cx: x, cy: y, r: 11 }), shape);
  g.addEventListener("click", () => pick(p));
  return g;
}
function keys(svg, marks, start) {
  if (!marks.length) return;
  (start || marks[0]).setAttribute("tabindex", "0");
  svg.addEventListener("keydown", event => {
    const at = marks.indexOf(document.activeElement), go = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: marks.length - 1 }[event.key];
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      marks[at].dispatchEvent(new MouseEvent("click"));
    } else if (go !== undefined) {
      event.preventDefault();
      const next = marks[Math.max(0, Math.min(marks.length - 1, go))];
      marks[at].setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    }
  });
}
function pointMark(s, svg, p, named, speedOf, unit) {
  const x = s.X(p.gpus), below = s.H - s.B + 10;
  if (!isPoint(p)) {
    const text = p.batches ? shares(p) : `${many(p.gpus, "GPU")}: ${p.feasible === null ? "nothing was found that fits" : "does not fit"}`;
    return mark(p, x, below, el("path", { class: "not" + (p.batches ? " batch" : ""), d: `M${x - 4} ${below - 4}L${x + 4} ${below + 4}M${x - 4} ${below + 4}L${x + 4} ${below - 4}` }), text);
  }
  const y = s.Y(speedOf(p)), name = named.get(p.gpus);
  if (name) nameAt(s, svg, x, y, `${name}: ${whole(p.gpus)}`);
  return mark(p, x, y, el("circle", { class: "point" + (name ? " named" : ""), cx: x, cy: y, r: name ? 7 : 5 }),
    `${many(p.gpus, "GPU")}${name ? ` (${name})` : ""}: ${count(speedOf(p))} ${unit}, ${time(p.time_ns)} a step, ${bytes(p.memory_bytes)} per GPU. ${p.strategy}`);
}
/* ---- several answers in one plot ------------------------------------------------------------- */

const MOST_KEPT = 5, SHAPES = ["M-5 -5h10v10h-10z", "M0 -6l6 11h-12z", "M0 -7l7 7l-7 7l-7 -7z", "M-6 -5h12l-6 11z", "M-6 -2h4v-4h4v4h4v4h-4v4h-4v-4h-4z"];
let drawn = null; /* the answer on the page: {question, key, a, points, words, speedOf} */
let kept = []; /* those that it is compared with */
const keyOf = question => new URLSearchParams(question).toString();
const others = () => kept.filter(x => !drawn || x.key !== drawn.key);
/* An answer and its curve as a series of the plot; null where there is no curve. */
async function seriesOf(question, a, turn) {
  const c = a.points ? a : await ofModel("curve", question, turn);
  const j = a.job || { model: c.model, batch: c.batch, seq: c.seq }, all = { ...a, job: j, memory_limit: c.memory_limit || a.memory_limit };
  return c.points.length ? { question, key: keyOf(question), a: all, points: c.points, words: worded(question, all) } : null;
}
/* The line of another answer, with its letter at the end. */
function otherLine(s, svg, x, i) {
  const good = x.points.filter(isPoint), at = good.map(p => [s.X(p.gpus), s.Y(x.speedOf(p))]);
  if (!good.length) return;
  svg.append(el("path", { class: `line other k${i}`, d: "M" + at.map(p => p.map(v => v.toFixed(1)).join(" ")).join("L") }));
  for (const p of apart(s, good, new Map(), 0))
    svg.append(el("path", { class: `shape k${i}`, d: SHAPES[i], transform: `translate(${s.X(p.gpus).toFixed(1)} ${s.Y(x.speedOf(p)).toFixed(1)})` },
      el("title", {}, `${letter(i)}: ${many(p.gpus, "GPU")}, ${count(x.speedOf(p))} ${s.unit}, ${time(p.time_ns)} a step`)));
  nameAt(s, svg, ...at[at.length - 1], letter(i));
}
const letter = i => String.fromCharCode(65 + i);
function swatch(i) {
  const shape = i < 0 ? el("circle", { class: "point", cx: 12, cy: 8, r: 5 }) : el("path", { class: `shape k${i}`, d: SHAPES[i], transform: "translate(12 8)" });
  return el("svg", { viewBox: "0 0 24 16", class: "swatch", "aria-hidden": "true" }, el("line", { class: i < 0 ? "line" : `line other k${i}`, x1: 0, x2: 24, y1: 8, y2: 8 }), shape);
}
function removeButton(x) {
  const button = el("button", { type: "button", class: "quiet small", "aria-label": `Remove ${x.words}` }, "Remove");
  button.addEventListener("click", () => {
    kept = kept.filter(y => y !== x);
    draw();
    link(drawn.picked);
    $("keep").focus();
  });
  return button;
}
/* Of several answers, each with its letter, the cheapest and the soonest. */
function best(list) {
  const fit = list.filter(([, x]) => x.a.gpus), t = fit.map(([, x]) => trainingOf(x.a)), priced = t.every(y => y && y.price && y.currency === t[0].currency);
  const least = of => fit.reduce((y, x) => of(x[1]) < of(y[1]) ? x : y)[0];
  const trains = t.every(Boolean), tokens = fit.every(([, x]) => tokensOf(x.a.job) > 1);
  const soon = least(x => trains ? x.a.training_hours : 1 / x.speedOf(x.a)), cheap = least(x => priced ? x.a.training_cost : trains ? x.a.training_gpu_hours : hours(x.a.job, x.a.gpus, x.a.time_ns, tokens));
  return `${priced ? "Cheapest" : "Fewest GPU-hours"}: ${cheap}; ${trains ? "soonest" : "fastest"}: ${soon}.`;
}
/* The legend of several answers: each question in words, and what was answered. */
function compared(unit) {
  const row = (x, i) => [[el("span", { class: "key" }, swatch(i), el("b", {}, i < 0 ? "now" : letter(i))), "k"], [x.words, "w"], [x.a.gpus ? whole(x.a.gpus) : "does not fit", "n"], [x.a.gpus ? time(x.a.time_ns) : "", "n"],
    [x.a.gpus ? count(x.speedOf(x.a)) : "", "n"], [x.a.gpus ? count(hours(x.a.job, x.a.gpus, x.a.time_ns, unit === "tokens/s")) : "", "n"], ...totals(x.a, columns), [i < 0 ? "" : removeButton(x)]];
  const list = others(), trained = [drawn, ...list].map(x => trainingOf(x.a)).filter(Boolean), columns = trained.find(t => t.price) || trained[0];
  $("compared").replaceChildren(...(list.length ? [table([["line"], ["question"], ["GPUs", "n"], ["step", "n"], [unit, "n"], [perHours(unit === "tokens/s"), "n"], ...totalHeads(columns), [""]], [row(drawn, -1), ...list.map(row)], ""),
    ...([drawn, ...list].filter(x => x.a.gpus).length > 1 ? [el("p", { id: "best" }, best([["now", drawn], ...list.map((x, i) => [letter(i), x])]))] : [])] : []));
  const is = kept.some(x => x.key === drawn.key);
  $("keep").disabled = is || kept.length >= MOST_KEPT;
  $("keep").textContent = is ? "Kept: change the question and ask again" : kept.length >= MOST_KEPT ? `${MOST_KEPT} are kept: remove one first` : "Keep this curve to compare with others";
}
function keep() {
  kept.push(drawn);
  draw();
  link(drawn.picked);
}
/* Speeds that can be compared: tokens, if all have them. */
function setSpeeds(list) {
  const tokens = list.every(x => tokensOf(x.a.job) > 1);
  for (const x of list) x.speedOf = p => x.a.job.batch * (tokens ? x.a.job.seq : 1) * 1e9 / p.time_ns;
  return tokens ? "tokens/s" : "samples/s";
}
function namesOf(a) {
  const named = new Map((a.alternatives || (a.gpus ? [{ gpus: a.gpus, names: ["answer"] }] : [])).map(r => [r.gpus, (r.names || ["answer"]).join(", ")]));
  if (a.gpus && !named.has(a.gpus)) named.set(a.gpus, "answer");
  return named;
}
function draw() {
  const { points, a } = drawn, list = [drawn, ...others()], unit = setSpeeds(list), speedOf = drawn.speedOf;
  const box = $("curve"), s = Object.assign(scale(list, drawn, room(box)), { unit }), svg = canvas(s.W, s.H, `${unit} against GPUs`), named = namesOf(a);
  axes(s, svg, unit);
  const words = others().length ? [] : shade(s, svg, points, a); /* of one answer: others may do there */
  curves(s, svg, speedOf);
  others().forEach((x, i) => otherLine(s, svg, x, i));
  const may = shown(points).length ? shown(points) : points, put = apart(s, may, named, drawn.picked), marks = put.map(p => pointMark(s, svg, p, named, speedOf, unit));
  svg.append(...marks);
  keys(svg, marks, marks.find(m => m.dataset.gpus === String(drawn.picked || a.gpus)));
  for (const m of marks) m.classList.toggle("picked", m.dataset.gpus === String(drawn.picked));
  box.replaceChildren(svg);
  if (s.good.length) words.unshift("Line: what is expected; around it, the margin. Dashed: perfect scaling, the best speed per GPU times the GPUs.");
  $("legend").replaceChildren(el("p", {}, words.join(" ")), el("p", {}, "Choose a point (arrow keys and Enter do, too) for its memory. Crosses are numbers of GPUs that can't be used."
    + (put.length < may.length ? ` ${whole(put.length)} of ${whole(may.length)} numbers have a mark; the table has all.` : "")));
  compared(unit);
  $("points").replaceChildren(pointTable(points, speedOf, unit, trainingOf(a)), ...notes(points));
}
function pointTable(points, speedOf, unit, t) {
  const choice = p => {
    const button = el("button", { type: "button", class: "quiet small", "aria-label": `Memory of ${many(p.gpus, "GPU")}` }, whole(p.gpus));
    button.addEventListener("click", () => pick(p));
    return button;
  };
  return table([["GPUs", "n"], ["step", "n"], [unit, "n"], ...totalHeads(t), ["memory per GPU", "n"], ["strategy, or why not"]],
    points.map(p => isPoint(p) ? [[choice(p), "n"], [time(p.time_ns), "n"], [count(speedOf(p)), "n"], ...totals(p, t), [held(p), "n"], [p.strategy, "t"]]
      : [[whole(p.gpus), "n"], ["", "n"], ["", "n"], ...totals({}, t), ["", "n"], [p.batches ? shares(p) : "does not fit", "t"]]), "");
}

/* ---- one count: memory by component, and its frontier -------------------------------------- */

const COLORS = ["#2459c9", "#6f9bf0", "#0b7a75", "#45b3a8", "#b3661f", "#e0a458", "#7a4ba8", "#b89bd6", "#a23b63", "#d98aa6", "#5b6577", "#9aa4b5"];
const PARTS = { optimizer: "optimizer state + master weights", data: "samples", buffers: "communication buffers", activations: "activations saved for backward",
  recomputed: "recomputed activations", transient: "temporary buffers of an operator", loss: "logits and their gradient (loss)", waiting: "activations between operators",
  reserve: "context and libraries" };
function memory(a, W) {
  const all = Object.entries(a.memory_parts || {}).filter(([, v]) => v > 0), parts = all.filter(([k]) => k !== "reserve").sort((x, y) => y[1] - x[1]);
  const beside = (a.memory_parts || {}).reserve, limit = a.memory_limit, sum = parts.reduce((t, [, v]) => t + v, 0), used = Math.max(a.memory_bytes, sum);
  const X = v => v / (1.04 * Math.max(limit, used)) * W, svg = canvas(W, 64, "memory of a GPU by component");
  let at = 0;
  svg.append(el("rect", { class: "few", x: 0, y: 6, width: X(limit), height: 30 }));
  parts.forEach(([name, v], i) => {
    svg.append(el("rect", { x: X(at), y: 6, width: Math.max(1, X(v)), height: 30, fill: COLORS[i % COLORS.length] }, el("title", {}, `${PARTS[name] || name}: ${bytes(v)}`)));
    at += v;
  });
  svg.append(el("line", { class: "limit", x1: X(limit), x2: X(limit), y1: 0, y2: 44 }));
  label(svg, X(limit), 58, `limit ${bytes(limit)}`, { class: "bad", "text-anchor": X(limit) > W - 60 ? "end" : "middle" });
  const rows = parts.map(([name, v], i) => {
    const swatch = el("i", {});
    swatch.style.backgroundColor = COLORS[i % COLORS.length];
    return el("li", {}, swatch, PARTS[name] || name, el("b", {}, bytes(v)));
  });
  const loss = (a.memory_parts || {}).loss || 0, none = a.memory_parts && a.memory_parts.gradients === 0;
  const peak = [none ? "Gradients are not in it: backward makes them after the peak." : "",
    20 * loss > used ? "The peak is at the loss: a fused or chunked loss, which never holds all logits, needs less." : ""].filter(Boolean).join(" ");
  return [svg, el("ul", { class: "parts" }, ...rows), ...(peak ? [el("p", { class: "soft" }, peak)] : []), ...(beside ? [el("p", { class: "soft" }, `With context and libraries up to ${bytes(beside)} more.`)] : [])];
}
/* What each pipeline stage holds, beside the limit, and how busy it is. */
function stages(a, W) {
  const all = a.stages || [], limit = a.memory_limit, H = 20, L = 62, R = 150, most = 1.04 * Math.max(limit, ...all.map(s => s.memory_bytes));
  if (!all.length) return [];
  const X = v => L + v / most * (W - L - R), svg = canvas(W, all.length * H + 8, "memory and busy time of pipeline stages");
  all.forEach((s, i) => {
    label(svg, L - 8, i * H + 15, `stage ${i}`, { "text-anchor": "end" });
    svg.append(el("rect", { class: "few", x: L, y: i * H + 3, width: X(limit) - L, height: H - 5 }),
      el("rect", { x: L, y: i * H + 3, width: X(s.memory_bytes) - L, height: H - 5, fill: COLORS[0] }, el("title", {}, `stage ${i}: ${bytes(s.memory_bytes)}`)));
    label(svg, W - R + 10, i * H + 15, `${bytes(s.memory_bytes)}, busy ${Math.round(100 * s.busy_ns / a.time_ns)} %`);
  });
  svg.append(el("line", { class: "limit", x1: X(limit), x2: X(limit), y1: 0, y2: all.length * H + 4 }));
  return [el("p", {}, `${many(all.length, "pipeline stage")}${a.uniform && a.uniform.vp > 1 ? ` of ${a.uniform.vp} chunks` : ""}, a bubble of ${time(a.idle_ns)} on the mean:`), svg,
    ...(a.plan_id ? [schedule(a.plan_id)] : [])];
}
/* The server's drawing of when stages work; where there is none, its place stays empty. */
function schedule(id) {
  const img = el("img", { class: "schedule", alt: "the schedule of the pipeline stages" });
  fetch(`v1/plans/${encodeURIComponent(id)}/schedule`, { headers: { Accept: "*/*" } }).then(r => r.ok ? r.text() : "")
    .then(svg => { if (svg) img.src = `data:image/svg+xml,${encodeURIComponent(svg)}`; else img.remove(); }, () => img.remove());
  return img;
}
/* How much memory is drawn: not so much that the part below the limit is lost. */
const beyond = (points, limit) => Math.min(1.06 * Math.max(limit, ...points.map(p => p.memory_bytes)),
  Math.max(1.6 * limit, 1.25 * Math.min(...points.map(p => p.memory_bytes))));
/* Each strategy that no other beats in both: less memory costs time. */
function frontier(points, limit, chosen, W) {
  const H = 260, L = 62, R = 12, T = 22, B = 40, most = beyond(points, limit), slow = 1.1 * Math.max(...points.map(p => p.time_ns));
  const X = v => L + v / most * (W - L - R), Y = v => H - B - v / slow * (H - T - B), svg = canvas(W, H, "time of a step against memory of a GPU");
  const unit = limit >= GIB ? [GIB, "GiB"] : [2 ** 20, "MiB"];
  svg.append(el("rect", { class: "shade", x: X(limit), y: T, width: W - R - X(limit), height: H - T - B }));
  for (const v of steps(slow, 5)) {
    svg.append(el("line", { class: "grid", x1: L, x2: W - R, y1: Y(v), y2: Y(v) }));
    label(svg, L - 8, Y(v) + 4, v ? time(v) : "0", { "text-anchor": "end" });
  }
  for (const v of steps(most / unit[0], W < 400 ? 4 : 7)) label(svg, X(v * unit[0]), H - B + 18, whole(v), { "text-anchor": "middle" });
  const sorted = points.filter(p => p.memory_bytes <= most).sort((p, q) => p.memory_bytes - q.memory_bytes);
  svg.append(el("path", { class: "line", d: sorted.map((p, i) => i ? `H${X(p.memory_bytes)}V${Y(p.time_ns)}` : `M${X(p.memory_bytes)} ${Y(p.time_ns)}`).join("") + `H${W - R}` }),
    el("line", { class: "limit", x1: X(limit), x2: X(limit), y1: T, y2: H - B }));
  for (const p of sorted)
    svg.append(el("circle", { class: p.memory_bytes > limit ? "over" : "point" + (p.memory_bytes === chosen ? " named" : ""), cx: X(p.memory_bytes), cy: Y(p.time_ns), r: p.memory_bytes === chosen ? 7 : 4 },
      el("title", {}, `${bytes(p.memory_bytes)} a GPU, ${time(p.time_ns)} a step`)));
  label(svg, W - R, H - 4, `memory of a GPU, ${unit[1]}`, { "text-anchor": "end" });
  label(svg, 2, 14, "time of a step");
  label(svg, Math.min(X(limit), W - R - 20), 14, "limit", { class: "bad", "text-anchor": "middle" });
  return svg;
}
async function pick(p) {
  if (asking.busy) return;
  const mark = $("curve").querySelector(`[data-gpus="${p.gpus}"]`);
  drawn.picked = p.gpus;
  if (!mark) draw(); /* it had no room */
  for (const e of document.querySelectorAll("#curve .pick")) e.classList.toggle("picked", e === mark || e.dataset.gpus === String(p.gpus));
  link(p.gpus);
  const head = el("h3", {}, many(p.gpus, "GPU")), turn = ++asking.turn;
  if (p.batches) return $("detail").replaceChildren(head, el("p", {}, shares(p) + "."));
  const { max_gpus, min_efficiency, mode, gpus, ...question } = asking.question, parts = el("div", {}), front = el("div", {});
  $("detail").replaceChildren(head, el("div", { class: "halves" }, parts, front));
  const limit = p.limit || (drawn.a && drawn.a.memory_limit);
  $("cancel").hidden = false;
  try {
    await Promise.all([detail(p, question, turn, parts), front_of(p, question, turn, front, limit)]);
    tell("");
  } catch (error) {
    if (error === STALE) return;
    tell(error.message, true);
  }
  $("cancel").hidden = true;
}
async function detail(p, question, turn, box) {
  try {
    const a = await plan({ ...question, mode: "mini-time", gpus: p.gpus }, turn);
    if (several(a)) return box.replaceChildren(el("p", {}, `${time(a.time_ns)} a step on several groups:`), groups(a));
    box.replaceChildren(el("p", {}, sentence(a.strategy)), el("p", {}, `${bytes(a.memory_bytes)} per GPU at the peak, of ${bytes(a.memory_limit)} that plans may use${a.verdict ? ` (${a.verdict})` : ""}:`),
      ...memory(a, room(box)), ...stages(a, room(box)), el("p", {}, `${time(a.time_ns)} a step: ${time(a.compute_ns)} compute, ${time(a.network_ns)} exposed communication.`),
      copyable("plan", a.plan_id), downloads(a.plan_id));
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 422) throw error;
    const near = error.body.nearest;
    box.replaceChildren(el("p", { class: "bad" }, sentence(error.message)), el("p", {}, withWords(error.body)),
      ...(near && p.limit ? [el("p", {}, `What is lightest there needs ${bytes(near.memory_bytes)} a GPU, ${bytes(near.memory_bytes - p.limit)} more than there is.`)] : []));
  }
}
async function front_of(p, question, turn, box, limit) {
  const f = await ofModel("frontier", question, turn, { gpus: p.gpus });
  const points = (f.points || []).filter(x => x.time_ns > 0 && x.memory_bytes);
  if (!points.length || !limit) return;
  box.replaceChildren(...[el("p", {}, `${many(points.length, "strategy").replace("strategys", "strategies")} of ${many(p.gpus, "GPU")}, each the fastest with its memory:`),
    frontier(points, limit, p.memory_bytes, room(box)),
    points.some(x => x.memory_bytes > beyond(points, limit)) ? el("p", { class: "soft" }, "Those that need yet more memory are left out.") : null].filter(Boolean));
}

/* ---- asking -------------------------------------------------------------------------------- */

/* Beside an answer for a number of GPUs: what would have been chosen without that.  Milliseconds, of plans of one
 * choice for the whole model; of others it would be another search, which nobody asked for. */
async function choices(question, a, turn) {
  const { mode, gpus, ...rest } = question;
  if (a.alternatives || a.space !== "uniform" || !gpus) return;
  try {
    const free = await plan(rest, turn);
    if (!free.alternatives || $("plot").hidden) return;
    $("beside").replaceChildren(alternatives({ ...free, gpus: a.gpus }));
    drawn.a.alternatives = free.alternatives;
    draw();
  } catch (error) {
    if (error === STALE) throw error; /* else: there are none */
  }
}
const asking = { turn: 0, tasks: new Set(), question: {}, shown: false, busy: false, sending: null };
function link(point) {
  const q = new URLSearchParams(point ? { ...asking.question, point } : asking.question);
  for (const x of kept) q.append("compare", x.key);
  history.replaceState(null, "", "#" + q);
}
function busy(on) {
  asking.busy = on;
  $("cancel").hidden = !on;
  for (const id of ["said", "curve", "detail"]) $(id).classList.toggle("stale", on);
  $("answer").setAttribute("aria-busy", String(on));
}
/* Room is made as soon as something is asked, so that nothing below moves when the answer is there. */
function reveal(on) {
  if (!asking.shown) $("answer").hidden = $("plot").hidden = !on;
}
function wrong(error) {
  const there = error instanceof Refusal && showError(error.source, error.message);
  tell(there ? "One field needs another look." : sentence(inWords(error.message)), true);
}
/* The answer, or the refusal of what does not fit. */
async function answerOf(question, turn) {
  try {
    return await plan(question, turn);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 422) throw error;
    return error.body;
  }
}
function showAnswer(a) {
  $("answer").hidden = Boolean(a.points); /* mode profiling: a curve, sizes no job */
  if (several(a)) showGroups(a);
  else if (a.plan_id) show(a);
  else if (!a.points) refuse(a);
}
/* The answers that a link compares with, asked anew; those that are refused by now are left out. */
async function restore(keys, turn) {
  for (const key of keys) {
    const params = new URLSearchParams(key), question = questionOf(name => params.get(name) || "");
    try {
      const x = await seriesOf(question, await answerOf(question, turn), turn);
      if (x && !kept.some(y => y.key === x.key)) kept.push(x);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }
}
/* A file that is on its way is the model that is asked about; where it is refused, nothing is asked. */
async function fileTaken() {
  if (asking.sending) tell(`reading ${$("f-file").files[0] ? $("f-file").files[0].name : "the file"}…`);
  const taken = asking.sending ? await asking.sending : true;
  if (!taken) $("f-file").focus();
  return taken;
}
async function ask(point, compare) {
  const turn = ++asking.turn;
  if (!await fileTaken() || turn !== asking.turn) return;
  const question = read();
  clearErrors();
  if (!question.model_id) return wrong(new Refusal(400, { errors: [{ description: "choose a model, or a file", source: "model_id" }] }));
  asking.question = question;
  if (!compare) link();
  tell("asking…");
  reveal(true);
  busy(true);
  try {
    const a = await answerOf(question, turn);
    showAnswer(a);
    asking.shown = true;
    const found = await seriesOf(question, a, turn);
    $("plot").hidden = !found;
    $("detail").replaceChildren();
    if (compare) {
      kept = [];
      await restore(compare, turn);
    }
    if (found) {
      drawn = found;
      draw();
    }
    link();
    await choices(question, a, turn);
    tell("");
    busy(false);
    const p = point && found && found.points.find(x => x.gpus === Number(point));
    if (p) pick(p);
    recent().catch(() => 0);
  } catch (error) {
    if (error === STALE) return;
    busy(false);
    reveal(false);
    wrong(error);
  }
}
async function cancel() {
  asking.turn++;
  busy(false);
  reveal(false);
  tell("Canceled.");
  await Promise.all([...asking.tasks].map(give_up));
  queue().catch(() => 0);
}
/* The file becomes the chosen model: true; or is refused, at its field. */
async function upload(file) {
  clearErrors();
  tell(`reading ${file.name}…`);
  const text = await file.text();
  try {
    JSON.parse(text);
  } catch (error) {
    tell("", false);
    showError("file", `the file ${file.name} is not JSON. For ONNX files and Megatron-LM's scripts run topt client add-model ${file.name}; then the model is in the list`);
    return false;
  }
  const name = file.name === "config.json" ? "" : `?name=${encodeURIComponent(file.name)}`;
  const r = await sent("POST", `v1/models${name}`, text);
  if (r.status >= 400) {
    wrong(new Refusal(r.status, { errors: [{ ...((r.body || {}).errors || [{}])[0], source: "file" }] }));
    return false;
  }
  await models();
  $("ask").elements.model_id.value = r.body.id;
  tell(`${r.body.name}: ${parameters(r.body.parameters)} parameters. Press Ask.`);
  return true;
}
/* Whoever asks waits for the file that was chosen last. */
function send(file) {
  const sending = upload(file).catch(error => {
    wrong(error);
    return false;
  });
  asking.sending = sending;
  sending.then(taken => {
    if (asking.sending !== sending) return;
    asking.sending = null;
    if (!taken) chooseNone();
  });
}
/* No model is chosen: whoever asks has to choose one. */
function chooseNone() {
  const list = $("f-model_id");
  if (list.options.length === 0 || list.options[0].value) list.prepend(el("option", { value: "" }, "choose a model"));
  list.selectedIndex = 0;
}
/* A model of the list is asked about instead of the file. */
function forgetFile() {
  asking.sending = null;
  $("f-file").value = "";
  clearErrors();
}

/* ---- Slurm's queue ------------------------------------------------------------------------- */

const SPELLS_MOST = 20, YEAR_S = 300 * 86400; /* behind a job without a limit nobody knows when */
const starts = s => s < 0 ? "never" : s >= YEAR_S ? "unknown" : s < 60 ? "now" : `in ${clock(s)}`;
const clock = s => s >= 172800 ? `${digits(s / 86400)} days` : s >= 3600 ? `${digits(s / 3600)} h` : `${Math.round(s / 60)} min`;
const whose = j => j.job ? `${whole(j.job)}${j.user ? ` (${j.user})` : ""}` : "of another user";
const given = j => j.gpus_planned !== j.gpus ? `${whole(j.gpus)} → ${whole(j.gpus_planned)}` : whole(j.gpus);
const drawable = j => j.starts_in_s >= 0 && j.ends_in_s > j.starts_in_s && j.starts_in_s < YEAR_S;
/* Hours up to two days, else days. */
function timeAxis(svg, X, H, B, last) {
  const unit = last > 172800 ? [86400, "days"] : last > 7200 ? [3600, "hours"] : [60, "minutes"];
  for (const v of steps(last / unit[0], 6)) {
    svg.append(el("line", { class: "grid", x1: X(v * unit[0]), x2: X(v * unit[0]), y1: 4, y2: H - B }));
    label(svg, X(v * unit[0]), H - B + 16, String(v), { "text-anchor": v ? "middle" : "start" });
  }
  label(svg, X(last), H - 2, `${unit[1]} from now`, { "text-anchor": "end" });
}
/* A lane for each job: its name, the time as asked, and the planned one. */
function spells(jobs, W) {
  const narrow = W < 560, L = narrow ? 8 : 190, lane = narrow ? 40 : 26, B = 36, H = 8 + lane * jobs.length + B;
  const last = Math.max(60, ...jobs.map(j => Math.max(j.ends_in_s, j.as_asked_in_s < YEAR_S ? j.as_asked_ends_in_s : 0)));
  const X = s => L + Math.min(s, last) / last * (W - L - 12), svg = canvas(W, H, "When each waiting job runs");
  timeAxis(svg, X, H, B, last);
  jobs.forEach((j, i) => {
    const y = 8 + lane * i + (narrow ? 16 : 0), name = `${whose(j)}, ${given(j)} GPUs`, bar = (cls, a, b, at, h) => el("rect", { class: cls, x: X(a), y: at, width: Math.max(2, X(b) - X(a)), height: h, rx: 2 });
    label(svg, narrow ? L : L - 10, narrow ? y - 3 : y + 14, name.length > 27 && !narrow ? name.slice(0, 26) + "…" : name, { "text-anchor": narrow ? "start" : "end" });
    svg.append(el("g", { class: "spell" }, el("title", {}, `${name}: planned ${starts(j.starts_in_s)}, as asked ${starts(j.as_asked_in_s)}`),
      ...(j.as_asked_in_s >= 0 && j.as_asked_in_s < YEAR_S ? [bar("asked", j.as_asked_in_s, j.as_asked_ends_in_s, y, 6)] : []),
      bar(j.own || j.job ? "planned" : "planned foreign", j.starts_in_s, j.ends_in_s, y + 8, 10)));
  });
  return svg;
}
let spelled = []; /* what is drawn, for another width */
function drawSpells() {
  $("spells").replaceChildren(...(spelled.length ? [spells(spelled, room($("spells")))] : []));
  $("spelled").hidden = !spelled.length;
}
async function waiting() {
  let r = await sent("GET", "v1/queue");
  for (let i = 0; r.status === 202 && i < 30; i++) {
    await new Promise(done => setTimeout(done, 1000));
    r = await sent("GET", "v1/queue");
  }
  $("waiting").hidden = false;
  if (r.status !== 200) {
    $("idle").textContent = sentence(`Slurm's queue is not known: ${new Refusal(r.status, r.body).message}`);
    spelled = [];
    drawSpells();
    $("waits").replaceChildren();
    return;
  }
  const q = r.body, helped = q.jobs.filter(j => j.starts_in_s >= 0 && j.ends_in_s < j.as_asked_ends_in_s);
  const saved = helped.reduce((t, j) => t + j.as_asked_ends_in_s - j.ends_in_s, 0);
  $("idle").textContent = `${whole(q.idle)} of ${many(q.gpus, "GPU")} ${q.idle === 1 ? "is" : "are"} idle; ${many(q.jobs.length + (q.left_out || 0), "job")} ${q.jobs.length + (q.left_out || 0) === 1 ? "waits" : "wait"}.` +
    (helped.length ? ` With other numbers of GPUs ${many(helped.length, "job")} would end earlier, by ${clock(saved / helped.length)} on average.` : "");
  spelled = q.jobs.filter(drawable).slice(0, SPELLS_MOST);
  drawSpells();
  $("waits").replaceChildren(q.jobs.length ? table([["job"], ["GPUs", "n"], ["as asked", "n"], ["planned", "n"], ["ends", "n"], ["what would help"]],
    q.jobs.map(j => [[whose(j), "k"], [given(j), "n"], [starts(j.as_asked_in_s), "n"], [starts(j.starts_in_s), "n"], [j.ends_in_s < 0 || j.ends_in_s >= YEAR_S ? "" : starts(j.ends_in_s), "n"], [j.why || "", "w"]]), "")
    : el("p", { class: "soft" }, "Nothing waits."));
}

/* ---- lists --------------------------------------------------------------------------------- */

async function models() {
  const list = (await get("v1/models")).models, before = $("ask").elements.model_id.value;
  $("ask").elements.model_id.replaceChildren(...(list.length ? [] : [el("option", { value: "" }, "none yet: choose a file")]),
    ...list.map(m => el("option", { value: m.id }, m.name)));
  if (before) $("ask").elements.model_id.value = before;
  return list;
}
async function hardware() {
  const list = await get("v1/hardware");
  $("ask").elements.hw.replaceChildren(...(list.default ? [] : [el("option", { value: "" }, "choose one")]),
    ...list.hardware.map(h => el("option", h.name === list.default ? { value: h.name, selected: "" } : { value: h.name }, h.name + (h.name === list.default ? " (default)" : ""))));
  return list.hardware;
}
async function recent() {
  const list = (await get("v1/plans")).plans;
  $("plans").replaceChildren(table([["model"], ["GPUs", "n"], ["step", "n"], ["memory per GPU", "n"], ["strategy"], ["made"], ["plan"]],
    list.map(p => [[p.model_name, "w"], [p.gpus ?? "", "n"], [p.time_ns ? time(p.time_ns) : "", "n"], [p.memory_bytes ? bytes(p.memory_bytes) : "", "n"], [p.strategy ?? "", "t"], [when(p.created), "t"], [el("a", { href: `v1/plans/${encodeURIComponent(p.id)}`, download: `${p.id}.json` }, el("code", {}, p.id)), "w"]]),
    "No plan was asked for yet."));
}
function stopButton(t) {
  const button = el("button", { type: "button", class: "quiet small", "aria-label": `Cancel ${t.task}` }, "Cancel");
  button.addEventListener("click", async () => {
    button.disabled = true;
    await give_up(t.task);
    queue().catch(() => 0);
  });
  return button;
}
const GOES = ["queued", "running"];
/* Of who may not, or of a server that has none, nothing is shown. */
async function queue() {
  const list = (await get("v1/tasks")).tasks.filter(t => GOES.includes(t.state));
  const others = list.some(t => t.uid !== undefined);
  $("queue").hidden = false;
  $("tasks").replaceChildren(table([["search"], ...(others ? [["user"]] : []), ["how it goes"], [""]],
    list.map(t => [[el("code", {}, t.task), "k"], ...(others ? [[String(t.uid)]] : []), [state(t, Date.now() - t.elapsed_ms)], [stopButton(t)]]),
    "Nothing is being searched."));
}
/* {name: [[labels, value]]} of Prometheus' text. */
function samples(text) {
  const all = {};
  for (const line of text.split("\n")) {
    const m = line.match(/^([a-z_]+)(?:\{(.*)\})? ([-0-9.e+]+)$/);
    if (m) (all[m[1]] = all[m[1]] || []).push([Object.fromEntries([...(m[2] || "").matchAll(/(\w+)="([^"]*)"/g)].map(x => [x[1], x[2]])), Number(m[3])]);
  }
  return all;
}
async function load() {
  const r = await fetch("metrics", { headers: { Accept: "text/plain" } });
  if (!r.ok) throw new Refusal(r.status);
  const all = samples(await r.text());
  const sum = (name, only) => (all[name] || []).filter(([l]) => !only || Object.entries(only).every(([k, v]) => l[k] === v)).reduce((t, [, v]) => t + v, 0);
  const hits = sum("topt_cache_hits_total"), searches = sum("topt_searches_total");
  const took = sum("topt_search_seconds_count"), free = sum("topt_store_free_bytes");
  $("server").hidden = false;
  $("load").replaceChildren(...facts([
    ["searches running", `${whole(sum("topt_searches_running"))} of ${whole(sum("topt_workers"))}`],
    ["waiting", `${whole(sum("topt_queue_length"))} of ${whole(sum("topt_queue_limit"))}`],
    ["answered without a search", hits + searches ? `${Math.round(100 * hits / (hits + searches))} % of ${whole(hits + searches)}` : "none asked"],
    took ? ["a search took", `${time(1e9 * sum("topt_search_seconds_sum") / took)} on average`] : null,
    ["searches shared", whole(sum("topt_searches_shared_total"))],
    ["searches that failed", whole(sum("topt_searches_failed_total"))],
    ["store", `${bytes(sum("topt_store_bytes"))}${free > 0 ? `, ${bytes(free)} free` : ""}`],
    ["connections", `${whole(sum("topt_connections"))} of ${whole(sum("topt_connections_limit"))}`],
    ["up for", lasts(sum("topt_uptime_seconds"))]]));
  const refusals = (all.topt_refusals_total || []).filter(([, v]) => v > 0).sort((x, y) => y[1] - x[1]);
  $("refusals").replaceChildren(table([["refused because"], ["to"], ["times", "n"]], refusals.map(([l, v]) => [[l.reason.replace(/_/g, " ")], [l.role || "", "k"], [whole(v), "n"]]), "Nothing was refused."));
}
async function observations() {
  const list = (await get("v1/observations")).observations, cell = (seen, said, text) => [seen ? `${said ? text(said) : "?"} → ${text(seen)}${said ? ` (${off(seen, said)})` : ""}` : "", "n"];
  $("jobs").hidden = false;
  $("observed").replaceChildren(table([["job"], ["plan"], ["step: predicted → observed", "n"], ["memory: predicted → observed", "n"], ["steps", "n"], ["reported"]],
    list.map(o => { const said = o.predicted || {}; return [[String(o.job)], [el("code", {}, o.plan_id), "w"], cell(o.step_ns, said.time_ns, time), cell(o.peak_bytes, said.memory_bytes, bytes), [o.steps ? whole(o.steps) : "", "n"], [when(o.created), "k"]]; }),
    "No finished job has reported yet: topt run does as it ends, another script by topt client observe."));
}
/* Ask again and again while somebody looks, until it is refused.  Done when it was answered for the first time. */
function watch(f, seconds) {
  let refused = false;
  const once = () => f().catch(error => { refused = error instanceof Refusal && [401, 403, 404].includes(error.status); });
  setInterval(() => { if (document.visibilityState === "visible" && !refused) once(); }, seconds * 1000);
  return once();
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* The point to choose ("0": none) and the questions to compare with; null where the link holds no question. */
function fromLink() {
  const q = new URLSearchParams(location.hash.slice(1)), form = $("ask").elements;
  if (!q.has("model_id")) return null;
  forgetFile();
  for (const name of ["model_id", ...Object.keys(api.fields)]) {
    const value = q.get(name), select = form[name].tagName === "SELECT";
    if (value !== null && select && ![...form[name].options].some(o => o.value === value)) form[name].append(el("option", { value }, value));
    if (value !== null) form[name].value = value;
    else if (!select) form[name].value = "";
    else form[name].selectedIndex = Math.max(0, [...form[name].options].findIndex(o => o.defaultSelected));
  }
  if (Object.keys(api.fields).some(n => !(n in COMMON) && q.has(n))) $("more").open = true;
  return [q.get("point") || "0", q.getAll("compare")];
}
async function start() {
  buildForm(await get("openapi.json"));
  const [known, clusters] = await Promise.all([models(), hardware()]);
  $("state").textContent = `${many(known.length, "model")}, ${many(clusters.length, "hardware profile")}`;
  const has = path => (api.paths[path] || {}).get, linked = fromLink();
  if (linked) reveal(true);
  /* Nobody is refused for having opened the page. */
  const sees = has("/v1/tasks") ? await get("v1/tasks") : { metrics: true };
  if (sees.queue) $("waiting").hidden = false; /* with room, since Slurm may take its time */
  await Promise.all([recent().catch(() => 0), sees.metrics && watch(load, 15), has("/v1/tasks") && watch(queue, 5), has("/v1/observations") && watch(observations, 60)]);
  $("page").hidden = false; /* all at once, so that nothing moves */
  if (sees.queue) watch(waiting, 15);
  if (linked) ask(...linked);
}
$("ask").addEventListener("submit", event => { event.preventDefault(); ask(); });
$("cancel").addEventListener("click", cancel);
$("f-file").addEventListener("change", event => event.target.files[0] ? send(event.target.files[0]) : forgetFile());
$("f-model_id").addEventListener("change", forgetFile);
$("keep").addEventListener("click", keep);
addEventListener("hashchange", () => {
  const linked = fromLink();
  if (linked) ask(...linked);
});
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { drawSpells(); if (drawn) draw(); } width = innerWidth; });
start().catch(error => {
  $("state").textContent = error.status === 401 ? "The server does not know who you are: come through the tunnel of your own login, or log in at the site's proxy." : sentence(error.message);
  $("state").className = "bad";
});
