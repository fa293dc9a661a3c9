"use strict";
// The page of `btqueue explore`: sliders ask, the server answers, charts are drawn. Texts from outside are set
// as texts and never as markup.

const PANELS = [
  ["Goodput", ["goodput_kbps", "throughput_kbps"]],
  ["Round trip", ["rtt_s", "rtt_p50_s", "rtt_p90_s", "rtt_p95_s", "rtt_p99_s", "session_time_s"]],
  ["Message delay", ["delay_s", "delay_p50_s", "delay_p90_s", "delay_p95_s", "delay_p99_s"]],
  ["Losses", ["segment_loss", "loss_token_buffer", "loss_baseband_buffer", "loss_radio", "loss_arq", "loss_relay", "loss_outside"]],
  ["Queues", ["queue_packets"]],
];
const BY_PART = ["Goodput", "Round trip", "Message delay", "Queues"]; // a line a queue, or a group where flows differ
const TABLES = [
  ["Traffic", ["traffic"]], ["Radio", ["radio", "link", "le", "energy", "voice"]], ["Host", ["transport"]],
  ["Polling and tokens", ["polling", "flow_control"]], ["Network and run", ["network", "run"]],
];
const SHOWN_FIRST = { sliders: 6, choices: 3 };
const sides = {};
let metrics = {}, start = "", talk = null, ids = 0;

const by = (selector, from = document) => from.querySelector(selector);
const say = (text) => { by("#said").textContent = text; };
const plain = (value) => value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);
const short = (value) => value === null || value === undefined ? "–" : plain(Number(value.toPrecision(4)));
const interval = ({ mean, ci95 }) => `${short(mean)} ± ${short(ci95)}`;

function made(name, attributes = {}, text = null) {
  const drawn = ["svg", "g", "path", "line", "circle", "text", "rect", "title"].includes(name);
  const element = drawn ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

// --- the link: everything behind #, which browsers send to nobody ---

const packed = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const unpacked = (text) => new TextDecoder().decode(Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0)));

function link() {
  const parts = new URLSearchParams();
  for (const [name, side] of Object.entries(sides)) {
    parts.set(name, packed(side.text || side.toml));
    if (side.along) parts.set(`along${name}`, `${side.along} ${side.low} ${side.high}`);
  }
  if (by("#bounds").value) parts.set("bounds", by("#bounds").value);
  return `${location.origin}/#${parts}`;
}

function fromLink() {
  const parts = new URLSearchParams(location.hash.slice(1)), found = {};
  by("#bounds").value = parts.get("bounds") || "";
  for (const name of ["A", "B"]) {
    try {
      if (parts.has(name)) found[name] = { toml: unpacked(parts.get(name)), axis: (parts.get(`along${name}`) || "").split(" ") };
    } catch { say("The link is damaged: the scenario that btqueue was started with is shown."); }
  }
  return found;
}

// --- asking ---

function ask(side, options = {}) {
  side.wanted = { ...side.wanted, ...options };
  if (side.waiting || !talk || talk.readyState !== WebSocket.OPEN) return; // the newest is sent when the first curve is there
  side.id = ++ids;
  side.waiting = true;
  side.asked = performance.now();
  const { along, low, high, toml, changes } = side;
  talk.send(JSON.stringify({ side: side.name, id: side.id, toml, changes, ...(along && { along, low, high }),
    rank: !side.ranked, simulate: by("#simulate").checked, ...side.wanted }));
  side.wanted = null;
  state(side, "waiting");
}

function state(side, name) {
  side.section.dataset.state = name;
  const curve = side.curve, words = { waiting: "solving…", draft: "a first curve by theory; the other points follow", complete: "model complete", done: "complete" };
  if (curve?.sketched) words.draft = "a first curve by one short simulated run a point; theory follows";
  by(".state", side.section).textContent = words[name] + (curve && name !== "waiting" ? ` (${curve.solved - curve.drafts - curve.sketched} of ${curve.of} points)` : "")
    + (name === "complete" && by("#simulate").checked ? "; simulating…" : "");
}

function answered(side) {
  side.waiting = false;
  if (side.wanted) ask(side);
}

const HEARD = {
  start(message) {
    ({ metrics } = message);
    start = message.toml;
    const found = fromLink();
    open("A", found.A ? found.A.toml : start, found.A?.axis);
    if (found.B) open("B", found.B.toml, found.A?.axis);
  },
  scenario(message, side) {
    side.controls = message.controls;
    side.network = message.network;
    side.title = message.title;
    HEARD.text(message, side);
    by("h2", side.section).textContent = `${side.name}: ${message.title || "scenario"}`;
    Object.assign(side, message.axis);
    drawControls(side);
    side.axisIsFirst = "along" in message.axis;
    drawAxis(side);
  },
  text(message, side) {
    side.text = message.toml;
    by(".toml", side.section).textContent = message.toml;
  },
  curve(message, side) {
    const first = side.waiting;
    if (first) {
      side.section.dataset.ms = String(Math.round(performance.now() - side.asked));
      side.simulated = [];
      side.here = null;
    }
    side.curve = message;
    trouble(side, message.problem && !message.places.length ? message.problem : "");
    doubt(side);
    draw();
    state(side, message.complete ? "complete" : "draft");
    history.replaceState(null, "", link());
    if (first) answered(side);
  },
  answer(message, side) { side.answer = message; trouble(side, message.problem); doubt(side); drawNetwork(side); drawNumbers(side); draw(); },
  simulated(message, side) {
    if (message.place === null) { side.here = message; drawNetwork(side); drawNumbers(side); return; }
    if (!message.problem) side.simulated.push(message);
    draw();
  },
  ranking(message, side) {
    side.effects = message.effects;
    side.ranked = side.controls.every(({ key }) => key in side.effects);
    const form = by("form", side.section); // nothing moves under the pointer
    if (form.matches(":hover")) form.addEventListener("pointerleave", () => drawControls(side), { once: true });
    else drawControls(side);
    const best = ranked(side).find((control) => control.low !== null);
    if (side.ranked && side.axisIsFirst && side.effects[side.along] === 0 && best) { goAlong(side, best.key); drawAxis(side); } // a greedy source has no load
  },
  problem(message, side) { trouble(side, message.message); state(side, "done"); side.section.dataset.state = "refused"; by(".state", side.section).textContent = "refused"; answered(side); },
  done(_, side) { state(side, "done"); },
};

function trouble(side, text) {
  const place = by(".problem", side.section);
  place.hidden = !text;
  place.textContent = text || "";
}

function doubt(side) {
  const played = side.answer?.answered_by === "simulation", who = played ? "The simulation" : "The model";
  const here = played ? [`Simulated, because theory does not stand here: ${side.answer.why.join("; ")}.`] : [];
  here.push(...(side.answer?.warnings ?? []).map((words) => `${who} warns here: ${words}.`));
  const { doubted = 0, simulated = 0, solved = 0, drafts = 0, sketched = 0 } = side.curve ?? {};
  if (sketched) here.push(`${sketched} of ${solved} points are of one short simulated run.`);
  if (drafts) here.push(`At ${drafts} of ${solved} points theory does not stand; simulations will replace it.`);
  if (simulated) here.push(`${simulated} of ${solved} points of the lines are simulated.`);
  if (doubted) here.push(`There are warnings at ${doubted} of ${solved} points of the lines.`);
  const place = by(".doubt", side.section);
  place.hidden = !here.length;
  place.textContent = here.join(" ");
}

function connect() {
  talk = new WebSocket(`ws://${location.host}/talk`);
  talk.onmessage = ({ data }) => {
    const message = JSON.parse(data), side = sides[message.side];
    if (message.kind === "start" || (side && message.id === side.id)) HEARD[message.kind](message, side);
  };
  talk.onclose = () => say("btqueue explore has ended, or this page is not allowed: start it again and open its address.");
}

// --- sides and controls ---

function open(name, toml, axis) {
  const section = by("#side").content.cloneNode(true).firstElementChild;
  section.id = `side-${name}`;
  section.setAttribute("aria-label", `scenario ${name}`);
  by("#sides").append(section);
  const [along, low, high] = axis || [];
  const side = sides[name] = { name, section, toml, changes: {}, simulated: [], effects: {}, controls: [], wanted: null };
  if (along && Number(low) < Number(high)) Object.assign(side, { along, low: Number(low), high: Number(high) });
  by(".others", section).append(...TABLES.map(([title], number) => {
    const box = made("div", { class: `table${number}` });
    box.append(made("h3", {}, title));
    return box;
  }));
  by("form", section).onsubmit = (event) => event.preventDefault();
  by(".along", section).onchange = (event) => { goAlong(side, event.target.value); drawAxis(side); };
  for (const end of ["low", "high"]) by(`.${end}`, section).onchange = (event) => { side[end] = Number(event.target.value); follow(side); };
  by(".copy-toml", section).onclick = () => copy(side.text, "TOML copied");
  by(".save-figure", section).onclick = () => save(figureOf(side), "image/svg+xml", `btqueue-${name}.svg`);
  by(".save-data", section).onclick = () => save(dataOf(side), "text/csv", `btqueue-${name}.csv`);
  document.body.classList.toggle("two", "B" in sides);
  by("#two").setAttribute("aria-pressed", String("B" in sides));
  ask(side, { fresh: true });
  return side;
}

function goAlong(side, key) {
  const control = side.controls.find((one) => one.key === key);
  Object.assign(side, { along: key, low: control.low, high: control.high, axisIsFirst: false });
  follow(side);
}

function follow({ along, low, high }) { // the scenarios share their axis, because they share their charts
  for (const side of Object.values(sides)) { Object.assign(side, { along, low, high }); ask(side); }
}

function drawAxis(side) {
  const select = by(".along", side.section);
  select.replaceChildren(...side.controls.filter((one) => one.low !== null).map(({ key }) => made("option", { value: key }, key)));
  select.value = side.along;
  by(".low", side.section).value = side.low;
  by(".high", side.section).value = side.high;
}

const ranked = (side) => side.controls.slice().sort((one, other) => (side.effects[other.key] ?? other.given) - (side.effects[one.key] ?? one.given));

function drawControls(side) {
  const focused = side.section.contains(document.activeElement) ? document.activeElement : null;
  side.boxes ||= {};
  const shown = { sliders: 0, choices: 0 };
  for (const control of ranked(side)) {
    const kind = control.choices.length ? "choices" : "sliders", effect = side.effects[control.key], idle = effect === 0;
    const first = effect === undefined ? control.given || control.key === side.along : !idle; // what may have no effect is folded
    side.boxes[control.key] ||= controlBox(side, control);
    const place = first && shown[kind]++ < SHOWN_FIRST[kind] ? ".first" : idle ? ".idle" : `.table${tableOf(control.key)}`;
    by(place, side.section).append(side.boxes[control.key]);
  }
  for (const box of side.section.querySelectorAll(".others > div")) box.hidden = !by(".control", box);
  by(".without", side.section).hidden = !by(".idle .control", side.section);
  by("legend", side.section).textContent = side.ranked ? "Keys, largest effect first" : "Keys (not yet sorted by effect)";
  focused?.focus(); // a moved element loses it
}

const tableOf = (key) => TABLES.findIndex(([, tables]) => tables.includes(key.split(".")[0]));

function controlBox(side, control) {
  const box = made("div", { class: "control", "data-key": control.key, title: control.meaning });
  const id = `${side.name}-${control.key}`, row = made("div", { class: "row" });
  box.append(made("label", { for: id }, control.key), row);
  const change = (value) => { side.changes[control.key] = String(value); ask(side); };
  if (control.choices.length) {
    const select = made("select", { id });
    select.append(...control.choices.map((value) => made("option", { value: String(value) }, String(value))));
    select.value = String(control.value);
    select.onchange = () => change(select.value);
    row.append(select);
    return box;
  }
  const range = made("input", { id, type: "range", min: control.low, max: control.high, step: control.whole ? 1 : "any" });
  const number = made("input", { type: "number", step: "any", "aria-label": `${control.key}, exact` });
  range.value = control.value;
  number.value = plain(control.value);
  range.oninput = () => { number.value = short(Number(range.value)); change(number.value); };
  number.onchange = () => { range.value = number.value; change(number.value || "?"); };
  row.append(range, number);
  return box;
}

// --- drawing ---

function ticks(low, high, count = 5) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * power >= rough) * power, found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) found.push(Number(value.toPrecision(10)));
  return found;
}

function decades(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) for (const step of [1, 2, 5]) found.push(Number(`${step}e${power}`));
  const within = found.filter((value) => value >= low && value <= high), tens = within.filter((value) => String(value.toExponential())[0] === "1");
  return within.length > 7 ? tens : within;
}

const BOUND = /^([a-z_0-9]+)\s*(<=|>=)\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)$/i;
const writtenBounds = () => by("#bounds").value.split(/,(?![^()]*\))/).map((text) => text.trim()).filter(Boolean);
const bounds = () => writtenBounds().map((text) => text.match(BOUND)).filter(Boolean).map(([, metric, sign, value]) => ({ metric, sign, value: Number(value) }));

function heading(name) {
  const [metric, ...queue] = name.split(" ");
  return queue.length ? queue.join(" ").replaceAll("_", " ") + (isPercentile(metric) ? ", 95 %" : "") : metrics[metric]?.title || metric;
}

const isPercentile = (metric) => metric.endsWith("_p95_s");
const partOf = (name) => name.split(" ").slice(1).join(" ");
const groupsOf = (side) => Object.keys(side.curve?.metrics || {}).filter((name) => name.startsWith("goodput_kbps ")).map(partOf);

function panelNames(side, title, names) {
  const parts = Object.keys(side.curve?.metrics || {}).filter((name) => BY_PART.includes(title) && name.startsWith(`${names[0]} `));
  const most = `${names[0].slice(0, -2)}_p95_s`; // beside the mean of a group, its 95th percentile
  const shown = (every) => every.filter((name) => side.curve.metrics[name]?.some((value) => value !== null)).slice(0, 7);
  return parts.length ? [...shown(parts), ...shown(parts.map((name) => name.replace(names[0], most)))] : shown(names);
}

function simulatedOf(message, name) {
  const [metric, ...queue] = name.split(" "), found = message.metrics[metric];
  if (!found) return null;
  return queue.length ? { mean: found.parts[queue.join(" ")] ?? null, ci95: found.intervals[queue.join(" ")] ?? null } : found;
}

function draw() { // both scenarios in the charts of the first
  const charts = by(".charts", sides.A.section), drawn = Object.values(sides).filter((side) => side.curve);
  if (!sides.A.curve) return;
  charts.classList.toggle("draft", drawn.some((side) => !side.curve.complete));
  charts.replaceChildren(...PANELS.map(([title, names]) => chart(drawn, title, names)));
}

function scale(low, high, log, begin, end) { // a value's place between two ends, and back
  const by = log ? Math.log : Number, [from, to] = [by(low), by(high)];
  return { log, at: (value) => begin + (by(value) - from) / (to - from) * (end - begin),
    back: (place) => { const value = from + (place - begin) / (end - begin) * (to - from); return log ? Math.exp(value) : value; },
    ticks: () => log ? decades(low, high) : ticks(low, high) };
}

function linesOf(drawn, title, names) {
  const along = drawn.filter((side) => side.along === drawn[0].along);
  return along.flatMap((side) => panelNames(side, title, names).map((name) => ({ side, name, values: side.curve.metrics[name],
    points: side.simulated.map((one) => ({ x: one.place, ...simulatedOf(one, name) })).filter((one) => Number.isFinite(one.mean)) })));
}

function heights(lines, limits, begin, end) { // logarithmic where the values span a decade; at most four are shown
  const all = [...limits.map(({ value }) => value), ...lines.flatMap(({ values, points }) => [
    ...values, ...points.flatMap(({ mean, ci95 }) => [mean, mean + Math.min(ci95 || 0, mean)])])].filter(Number.isFinite);
  const [least, most] = [Math.min(...all), Math.max(...all) || 1];
  return least > 0 && most >= 10 * least ? scale(Math.max(least, most / 1e4) / 1.15, most * 1.15, true, begin, end) : scale(0, most * 1.05, false, begin, end);
}

function chart(drawn, title, names) {
  const [width, height, left, right, top, bottom] = [420, 240, 48, 12, 8, 36], [side] = drawn, lines = linesOf(drawn, title, names);
  const figure = made("figure"), unit = lines.length ? metrics[lines[0].name.split(" ")[0]].unit : "";
  figure.append(made("figcaption", {}, `${title}${unit && unit !== "1" ? ` (${unit})` : ""}`));
  if (!lines.length) { figure.append(made("p", { class: "key" }, "the model does not give this here")); return figure; }
  const named = [...new Set(lines.map(({ name }) => name))], limits = bounds().filter(({ metric }) => named.some((name) => name.split(" ")[0] === metric));
  const y = heights(lines, limits, height - bottom, top), x = scale(side.low, side.high, side.low > 0 && side.high >= 100 * side.low, left, width - right);
  const within = (value) => y.log && value <= 0 ? height - bottom : Math.min(height - bottom, y.at(value));
  const svg = made("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title} along ${side.along}`, "data-log": `${x.log ? "x" : ""}${y.log ? "y" : ""}` });
  for (const value of y.ticks()) svg.append(made("line", { class: "grid", x1: left, x2: width - right, y1: y.at(value), y2: y.at(value) }),
    made("text", { x: left - 5, y: y.at(value) + 4, "text-anchor": "end" }, short(value)));
  for (const value of x.ticks()) svg.append(made("text", { x: x.at(value), y: height - bottom + 15, "text-anchor": "middle" }, short(value)));
  svg.append(made("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, side.along));
  const here = Number(side.changes[side.along] ?? side.controls.find((one) => one.key === side.along)?.value);
  if (here >= side.low && here <= side.high) svg.append(made("line", { class: "here", x1: x.at(here), x2: x.at(here), y1: top, y2: height - bottom }));
  for (const { sign, value } of limits) svg.append(made("line", { class: "bound", x1: left, x2: width - right, y1: y.at(value), y2: y.at(value) }),
    made("text", { class: "name", x: width - right - 2, y: y.at(value) - 4, "text-anchor": "end" }, `${sign === "<=" ? "≤" : "≥"} ${short(value)}`));
  const legend = made("div", { class: "legend" });
  for (const { side: of, name, values, points } of lines) {
    const group = groupsOf(of).indexOf(partOf(name)); // which has its colour in each chart
    const look = `s${(group < 0 ? named.indexOf(name) : group) % 7}${of === side ? "" : " other"}${group < 0 || !isPercentile(name.split(" ")[0]) ? "" : " percentile"}`, words = `${drawn.length > 1 ? `${of.name}: ` : ""}${heading(name)}`;
    let stands = "", doubted = "", before = null; // a stretch that ends at a point in doubt is in doubt
    values.forEach((value, number) => {
      if (value === null || (y.log && value <= 0)) { before = null; return; }
      const here = `${x.at(of.curve.places[number]).toFixed(1)} ${within(value).toFixed(1)}`, doubt = of.curve.kinds[number] === "solved, in doubt";
      if (before) { if (doubt || before.doubt) doubted += `M${before.here}L${here}`; else stands += `${stands.endsWith(before.here) ? "" : `M${before.here}`}L${here}`; }
      before = { here, doubt };
    });
    for (const [path, kind] of [[stands, ""], [doubted, " doubted"]]) if (path) svg.append(made("path", { class: `curve ${look}${kind}`, d: path }));
    for (const { x: at, mean, ci95 } of points) {
      const dot = made("circle", { class: `dot ${look}`, cx: x.at(at), cy: within(mean), r: 4 });
      dot.append(made("title", {}, `${words}: ${interval({ mean, ci95 })} at ${short(at)}`));
      svg.append(made("line", { class: `bar ${look}`, x1: x.at(at), x2: x.at(at), y1: within(mean - (ci95 || 0)), y2: within(mean + Math.min(ci95 || 0, mean)) }), dot);
    }
    const entry = made("span");
    entry.append(made("b", { class: look, "aria-hidden": "true" }, of !== side ? "┅ " : look.endsWith("percentile") ? "─ " : "▬ "), words);
    legend.append(entry);
  }
  const read = made("p", { class: "key read" }); // values at the pointer
  svg.onpointermove = ({ clientX }) => {
    const box = svg.getBoundingClientRect(), at = x.back((clientX - box.x) / box.width * width);
    const nearest = (places) => places.reduce((best, place, number) => Math.abs(x.at(place) - x.at(at)) < Math.abs(x.at(places[best]) - x.at(at)) ? number : best, 0);
    read.textContent = `${side.along} ${short(side.curve.places[nearest(side.curve.places)])}: ` + lines.map(({ side: of, name, values, points }) => {
      const played = points[nearest(points.map((one) => one.x))];
      return `${drawn.length > 1 ? `${of.name}: ` : ""}${heading(name)} ${short(values[nearest(of.curve.places)])}${played ? ` (simulated at ${short(played.x)}: ${interval(played)})` : ""}`;
    }).join("; ");
  };
  svg.onpointerleave = () => { read.textContent = ""; };
  figure.append(svg, legend, read);
  return figure;
}

function drawNetwork(side) {
  const { nodes, links } = side.network, [width, edge] = [420, 45];
  const ends = (axis) => [Math.min(...nodes.map((node) => node[axis])), Math.max(...nodes.map((node) => node[axis]))];
  const range = (axis) => ends(axis)[1] - ends(axis)[0];
  const [across, down] = range("x") < range("y") ? ["y", "x"] : ["x", "y"]; // lying networks leave room for names
  const height = 2 * edge + 200 * range(down), place = (node, axis, room) => edge + (node[axis] - ends(axis)[0]) / Math.max(range(axis), 0.2) * room;
  const svg = made("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "the network with its utilisations" });
  const at = Object.fromEntries(nodes.map((node) => [node.name, [place(node, across, width - 2 * edge), place(node, down, height - 2 * edge)]]));
  const shares = side.here?.metrics.slot_share?.parts || {};
  for (const { ends } of links) {
    const [[x1, y1], [x2, y2]] = ends.map((name) => at[name]);
    const share = shares[ends.join("-")] ?? shares[ends.slice().reverse().join("-")];
    svg.append(made("line", { class: "link", x1, y1, x2, y2, "stroke-width": 1.5 + 8 * (share || 0) }));
    if (share !== undefined && share !== null) svg.append(made("text", { class: "name", x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 8, "text-anchor": "middle" }, `${Math.round(100 * share)} % of slots`));
  }
  for (const { name, role } of nodes) {
    const [cx, cy] = at[name], node = made("circle", { class: "node", cx, cy, r: role === "central" ? 13 : 9 });
    node.append(made("title", {}, `${name}: ${role}`));
    svg.append(node, made("text", { class: "name", x: cx, y: cy + 27, "text-anchor": "middle" }, name));
  }
  const used = side.answer?.metrics.slot_utilisation?.mean, queues = side.answer?.metrics.queue_packets?.parts || {};
  const words = [used === null || used === undefined ? "" : `slots in use: ${Math.round(100 * used)} %`, ...Object.entries(queues).map(([name, mean]) => `${name.replaceAll("_", " ")}: ${short(mean)} packets`)];
  by(".network", side.section).replaceChildren(svg, made("p", { class: "key" }, words.filter(Boolean).join("; ") || "utilisations come with the simulation"));
}

function drawNumbers(side) {
  const table = by(".numbers", side.section), top = made("tr");
  const first = side.answer?.answered_by === "simulation" ? "simulated in place of theory" : "model";
  top.append(...["metric", "unit", first, "simulation ± 95 %"].map((text) => made("th", { scope: "col" }, text)));
  const rows = Object.entries(metrics).filter(([name]) => side.answer?.metrics[name] || side.here?.metrics[name]).flatMap(([name, { title, unit }]) => {
    const answers = [side.answer, side.here].map((one) => one?.metrics[name]), groups = groupsOf(side).filter((group) => answers.some((one) => Number.isFinite(one?.parts[group])));
    return (groups.length ? groups : [null]).map((group) => { // of flows that differ, a row for each group
      const row = made("tr"), of = (one) => one && group !== null ? { mean: one.parts[group], ci95: one.intervals[group] } : one, [solved, simulated] = answers.map(of);
      row.append(made("th", { scope: "row" }, group === null ? title : `${title}, ${group}`), made("td", {}, unit), made("td", {}, short(solved?.mean)), made("td", {}, simulated ? interval(simulated) : "–"));
      return row;
    });
  });
  table.replaceChildren(top, ...rows);
}

// --- taking away ---

async function copy(text, words) {
  try { await navigator.clipboard.writeText(text); say(words); } catch { say(text); } // without leave to copy, it is shown
}

function save(text, type, name) {
  const anchor = made("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10000);
}

function figureOf(side) {
  const whole = made("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: "0 0 880 960", width: 880, height: 960 });
  whole.append(made("rect", { width: 880, height: 960, fill: getComputedStyle(document.body).backgroundColor }));
  [...side.section.querySelectorAll(".charts figure")].forEach((figure, place) => {
    const part = made("g", { transform: `translate(${10 + 440 * (place % 2)} ${30 + 315 * Math.floor(place / 2)})` });
    part.append(made("text", { class: "name", y: -8, x: 5, "font-weight": "bold" }, by("figcaption", figure).textContent));
    [...(by("svg", figure)?.children || [])].forEach((child) => part.append(child.cloneNode(true)));
    [...figure.querySelectorAll(".legend span")].forEach((entry, number) => {
      const x = 50 + 185 * (number % 2), y = 252 + 14 * Math.floor(number / 2);
      part.append(made("line", { class: `curve ${by("b", entry).className}`, x1: x, x2: x + 16, y1: y - 4, y2: y - 4 }), made("text", { x: x + 20, y }, entry.lastChild.textContent));
    });
    whole.append(part);
  });
  whole.classList.add("leaving");
  document.body.append(whole); // styles are computed only inside the page
  for (const element of whole.querySelectorAll("*")) {
    const style = getComputedStyle(element);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family"]) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute("class");
  }
  whole.remove();
  whole.removeAttribute("class");
  return new XMLSerializer().serializeToString(whole);
}

function dataOf(side) {
  const lines = [["engine", side.along, "metric", "unit", "mean", "ci95", "answer"]], unit = (name) => metrics[name.split(" ")[0]].unit;
  for (const [name, values] of Object.entries(side.curve.metrics)) values.forEach((value, place) => {
    if (value !== null) lines.push(["solve", side.curve.places[place], name, unit(name), value, "", side.curve.kinds[place].replace(",", "")]);
  });
  for (const one of side.simulated) for (const [name, { mean, ci95 }] of Object.entries(one.metrics)) {
    if (mean !== null) lines.push(["simulate", one.place, name, unit(name), mean, ci95 ?? "", "simulated"]);
  }
  return lines.map((line) => line.join(",")).join("\n") + "\n";
}

by("#copy-link").onclick = () => copy(link(), "Link copied: it holds the scenario, and works where btqueue explore runs on this port.");
by("#bounds").oninput = () => {
  const drawn = Object.values(sides).filter((side) => side.curve).flatMap((side) => PANELS.flatMap(([title, names]) => panelNames(side, title, names)));
  const unknown = bounds().map(({ metric }) => metric).filter((metric) => !drawn.some((name) => name.split(" ")[0] === metric));
  const unread = writtenBounds().filter((text) => !BOUND.test(text));
  say([unread.length && `Not drawn: ${unread.join(", ")}. A bound is METRIC <= NUMBER or METRIC >= NUMBER, in the unit of its chart.`,
    unknown.length && `No chart shows ${unknown.join(", ")}.`].filter(Boolean).join(" "));
  draw();
  history.replaceState(null, "", link());
};
by("#simulate").onchange = () => Object.values(sides).forEach((side) => ask(side));
by("#two").onclick = () => {
  if (sides.B) {
    sides.B.section.remove();
    delete sides.B;
    document.body.classList.remove("two");
    by("#two").setAttribute("aria-pressed", "false");
    draw();
  } else open("B", sides.A.text, [sides.A.along, sides.A.low, sides.A.high]);
};
connect();
