"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const {steps, tokens, lines} = data, byId = id => document.getElementById(id);
const chosen = {stop: data.layer + 1, token: data.token, head: 0, step: -1, row: 0, column: 0};
const PER_CELL = 16, FEW = 8, TERMS = 12;

// ------------------------------------------------------------------------------------------------------- numbers

const decoded = new Map();
function load(record) {
  if (!record) return null;
  if (!decoded.has(record)) {
    const bytes = Uint8Array.from(atob(record.base64), letter => letter.charCodeAt(0));
    decoded.set(record, {shape: record.shape, features: record.features || null, values: new Float32Array(bytes.buffer)});
  }
  return decoded.get(record);
}
const own = (table, key) => Object.prototype.hasOwnProperty.call(table, key) ? table[key] : null;
const result = step => load(own(data.arrays, step.path));
const parameter = path => load(own(data.parameters, path));

// A result as tables of rows and columns: one for each head, or one alone.
function table(step, head) {
  const array = result(step);
  if (!array) return null;
  const shape = array.shape, columns = shape[shape.length - 1], rows = shape.length > 1 ? shape[shape.length - 2] : 1;
  const heads = shape.length > 2 ? shape[0] : 1, h = Math.min(head, heads - 1);
  return {array, rows, columns, heads, head: h, at: (i, j) => array.values[(h * rows + i) * columns + j],
          name: j => array.features ? array.features[j] : j};
}
const isWeights = step => step.op === "softmax";
const number = x => !Number.isFinite(x) ? String(x) : x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-4 ?
  x.toExponential(3) : String(Number(x.toPrecision(4)));

const short = x => Math.abs(x) < 1000 && Math.abs(x) >= 0.001 ? String(Number(x.toPrecision(3))) : number(x);

// --------------------------------------------------------------------------------------------------------- colors

const dark = matchMedia("(prefers-color-scheme: dark)");
function shade(x, largest, weights) {
  const paper = dark.matches ? [22, 22, 26] : [255, 255, 255];
  if (!Number.isFinite(x)) return [200, 0, 200];
  const strength = Math.min(1, Math.abs(x) / (largest || 1)) ** (weights ? 0.7 : 0.8);
  const full = weights ? (dark.matches ? [158, 202, 255] : [8, 48, 107]) :
    x < 0 ? (dark.matches ? [90, 160, 255] : [33, 90, 180]) : (dark.matches ? [255, 110, 90] : [190, 40, 30]);
  return paper.map((c, i) => Math.round(c + strength * (full[i] - c)));
}
function largestOf(view) {
  let most = 0;
  for (let i = 0; i < view.rows; i++) for (let j = 0; j < view.columns; j++) {
    const x = Math.abs(view.at(i, j));
    if (x > most && x < Infinity) most = x;
  }
  return most;
}
function paint(canvas, view, largest, weights) {
  canvas.width = view.columns;
  canvas.height = view.rows;
  const pen = canvas.getContext("2d"), image = pen.createImageData(view.columns, view.rows);
  for (let i = 0, k = 0; i < view.rows; i++) for (let j = 0; j < view.columns; j++, k += 4) {
    image.data.set(shade(view.at(i, j), largest, weights), k);
    image.data[k + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
}

// ------------------------------------------------------------------------------------------------------- pictures

function make(kind, options = {}, ...content) {
  const found = document.createElement(kind);
  for (const [name, value] of Object.entries(options)) if (name in found) found[name] = value; else found.setAttribute(name, value);
  found.append(...content);
  return found;
}
const rowNames = view => view.rows === tokens.length ? tokens : Array.from({length: view.rows}, (_, i) => String(i));
const square = (step, view) => step.output.symbols.endsWith("S × S") && view.columns === tokens.length;

function picture(place) {
  const step = steps[place.dataset.step], view = table(step, chosen.head);
  const card = place.closest(".card");
  card.classList.remove("whole");
  place.replaceChildren();
  if (!view) {
    if (Object.keys(data.arrays).length) place.append(make("p", {className: "shapes"}, "Its numbers are not on this page."));
    return;
  }
  const weights = isWeights(step), largest = largestOf(view);
  if (view.heads > 1) place.append(thumbnails(step, view.heads, weights));
  if (view.columns <= FEW && view.rows <= 2 * FEW) {
    const printed = figures(step, view, largest, weights);
    place.append(printed);
    card.classList.toggle("whole", printed.scrollWidth > printed.clientWidth);
  }
  else place.append(board(step, view, largest, weights), numbers(step, view));
  const scale = make("i");
  const color = x => `rgb(${shade(x, 1, weights).join(" ")})`;
  scale.style.background = weights ? `linear-gradient(90deg, ${color(0)}, ${color(1)})` :
    `linear-gradient(90deg, ${color(-1)}, ${color(-0.3)}, ${color(0)}, ${color(0.3)}, ${color(1)})`;
  const left = weights ? "0" : number(-largest), right = number(largest);
  place.append(make("div", {className: "legend"}, left, scale, right,
    view.array.features ? ` first ${view.columns} of ${step.output.shape[step.output.shape.length - 1]} columns` : ""));
}

// The numbers behind a picture, for screen readers and for copying; made when they are opened.
function numbers(step, view) {
  const place = make("details", {}, make("summary", {}, "Numbers"));
  place.ontoggle = () => {
    if (!place.open || place.querySelector("table")) return;
    const names = rowNames(view), heads = square(step, view) ? tokens : Array.from({length: view.columns}, (_, j) => view.name(j));
    const body = make("table", {}, make("tr", {}, make("td"), ...heads.map(name => make("th", {scope: "col"}, String(name)))));
    for (let i = 0; i < view.rows; i++) body.append(make("tr", {}, make("th", {scope: "row"}, names[i]),
      ...heads.map((_, j) => make("td", {title: String(view.at(i, j))}, number(view.at(i, j))))));
    place.append(make("div", {className: "figures", tabIndex: 0}, body));
  };
  return place;
}

function thumbnails(step, heads, weights) {
  const group = make("div", {className: "heads", role: "group", "aria-label": "Heads"});
  for (let h = 0; h < heads; h++) {
    const view = table(step, h), canvas = make("canvas");
    paint(canvas, view, largestOf(view), weights);
    const high = Math.min(36, Math.max(14, view.rows * 2)), wide = Math.min(60, Math.max(high, view.columns / 2));
    canvas.style.width = wide + "px";
    canvas.style.height = high + "px";
    group.append(make("button", {type: "button", title: `Head ${h}`, "aria-label": `Head ${h}`,
      "aria-pressed": String(h === view.head && h === Math.min(chosen.head, heads - 1)),
      onclick: () => { chosen.head = h; draw(); }}, canvas));
  }
  return group;
}

// Small enough to print every number.
function figures(step, view, largest, weights) {
  const names = rowNames(view), grid = make("table", {tabIndex: 0, "aria-label": step.output.name});
  for (let i = 0; i < view.rows; i++) {
    const line = make("tr", {}, make("th", {scope: "row"}, names[i]));
    for (let j = 0; j < view.columns; j++) {
      const cell = make("td", {onclick: () => explain(step.index, i, j), title: String(view.at(i, j))}, short(view.at(i, j)));
      const color = shade(view.at(i, j), largest, weights);
      cell.style.background = `rgb(${color.join(" ")})`;
      cell.style.color = 0.3 * color[0] + 0.6 * color[1] + 0.1 * color[2] > 128 ? "#111" : "#fff";
      cell.dataset.cell = `${i},${j}`;
      line.append(cell);
    }
    grid.append(line);
  }
  moves(grid, step, view);
  return make("div", {className: "figures"}, grid);
}

function board(step, view, largest, weights) {
  const names = rowNames(view), both = square(step, view), canvas = make("canvas");
  paint(canvas, view, largest, weights);
  const high = Math.max(view.rows === 1 ? 24 : 2, Math.min(PER_CELL, 480 / view.rows));
  const edge = make("div", {className: "board", tabIndex: 0, role: "application",
    "aria-label": `${step.output.name}, ${view.rows} by ${view.columns}: arrow keys move, Enter explains`}, canvas);
  edge.style.height = view.rows * high + 2 + "px";
  const mark = make("div", {className: "mark"}), row = make("div", {className: "mark row"});
  edge.append(row, mark);
  const beside = make("div", {className: "rows"});
  if (high >= 9) for (const [i, name] of names.entries()) beside.append(make("span", {className: i === chosen.token && view.rows === tokens.length ? "on" : "", title: name}, name));
  const frame = make("div", {className: "frame"}, beside, edge);
  if (both && high >= 9) {
    edge.style.width = `min(100%, ${view.columns * 30}px)`;
    const below = make("div", {className: "columns"}, ...tokens.map((name, j) => make("span", {className: j === chosen.token ? "on" : "", title: name}, name)));
    below.style.width = edge.style.width;
    frame.append(below);
  }
  const set = (element, i, j, w) => Object.assign(element.style, {
    top: 100 * i / view.rows + "%", height: 100 / view.rows + "%",
    left: 100 * j / view.columns + "%", width: 100 * w / view.columns + "%"});
  if (view.rows === tokens.length) set(row, chosen.token, 0, view.columns); else row.remove();
  if (chosen.step === step.index) set(mark, chosen.row, chosen.column, 1); else mark.hidden = true;
  edge.onclick = event => {
    const box = edge.getBoundingClientRect();
    explain(step.index, Math.min(view.rows - 1, Math.floor((event.clientY - box.top) / box.height * view.rows)),
      Math.min(view.columns - 1, Math.floor((event.clientX - box.left) / box.width * view.columns)));
  };
  moves(edge, step, view);
  return frame;
}

function moves(element, step, view) {
  element.dataset.board = step.index;
  element.onkeydown = event => {
    const by = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Enter: [0, 0]}[event.key];
    if (!by) return;
    event.preventDefault();
    const here = chosen.step === step.index ? [chosen.row, chosen.column] : [Math.min(chosen.token, view.rows - 1), 0];
    explain(step.index, Math.max(0, Math.min(view.rows - 1, here[0] + by[0])), Math.max(0, Math.min(view.columns - 1, here[1] + by[1])));
  };
}

// -------------------------------------------------------------------------------------------- one number, worked out

// The value of a result at a row and a feature's own number, or null where it is not on the page.
function value(step, row, feature, head = 0) {
  const view = step && table(step, head);
  if (!view) return null;
  const j = view.array.features ? view.array.features.indexOf(feature) : feature;
  return j < 0 || j >= view.columns || row >= view.rows ? null : view.at(view.rows === 1 ? 0 : row, j);
}
// A whole row of a result; heads lie side by side.
function wholeRow(step, row) {
  const view = step && table(step, 0);
  if (!view || view.array.features) return null;
  const found = [];
  for (let h = 0; h < view.heads; h++) {
    const one = table(step, h);
    for (let j = 0; j < one.columns; j++) found.push(one.at(one.rows === 1 ? 0 : row, j));
  }
  return found;
}
const from = step => step.sources.filter(one => typeof one === "number").map(one => steps[one]);
// Of a query, key or value: the numbers of one head, whether heads lie side by side or one after the other.
function ofHead(step, row, head) {
  const view = step && table(step, head);
  if (!view || view.array.features) return null;
  if (view.heads > 1) return Array.from({length: view.columns}, (_, j) => view.at(row, j));
  const all = wholeRow(step, row), size = all.length / data.heads;
  return Number.isInteger(size) ? all.slice(head * size, (head + 1) * size) : null;
}
const sum = list => list.reduce((total, x) => total + x, 0);
const GELU = new Set(["gelu", "gelu_python"]);

// {terms: [[name, value], …], sum: their sum as [name, value], then: further [name, value] lines} or null.
function work(step, row, column, head, shown) {
  const view = table(step, head), feature = view.name(column), sources = from(step), s = step.settings;
  const name = i => (step.inputs[i] || {name: "x"}).name;
  if (["add", "add_bias", "multiply"].includes(step.op)) {
    const h = view.heads > 1 ? head : 0, found = sources.slice(0, 2).map(one => value(one, row, feature, h));
    if (found.length < 2 || found.includes(null)) return null;
    if (step.op === "multiply") return {terms: [], then: [[name(0), found[0]], [name(1), found[1]], ["product", found[0] * found[1]]]};
    return {terms: found.map((x, i) => [name(i), x]), sum: ["sum", sum(found)]};
  }
  if (["add_row", "add_by_query", "add_by_key"].includes(step.op)) {
    const before = value(sources[0], row, feature, head);
    return before === null ? null : {terms: [[name(0), before], [name(1), shown - before]], sum: ["sum", shown]};
  }
  if (step.op === "linear" || step.op === "project") {
    const source = sources[0], x = source && wholeRow(source, row), paths = step.parameters.map(parameter);
    const matrix = paths.find(one => one && one.shape.length === 2), bias = paths.find(one => one && one.shape.length === 1);
    const at = matrix ? (matrix.features || [...Array(matrix.shape[0]).keys()]).indexOf(feature) : -1;
    if (!x || at < 0 || x.length !== matrix.shape[1]) return null;
    const products = x.map((one, j) => [`${number(one)} · ${number(matrix.values[at * x.length + j])}`, one * matrix.values[at * x.length + j], j]);
    const b = bias ? bias.values[bias.features ? bias.features.indexOf(feature) : feature] : 0;
    const all = sum(products.map(one => one[1])) + b;
    const found = largest(products.map(([text, x, j]) => [`${j}: ${text}`, x]), bias ? [["bias b", b]] : []);
    return {...found, sum: ["sum", all], then: s.activation ? [[`${s.activation}(${number(all)})`, shown]] : []};
  }
  if (step.op === "scores") {
    const q = ofHead(sources[0], row, head), k = ofHead(sources[1], column, head);
    if (!q || !k || q.length !== k.length) return null;
    const products = q.map((one, d) => [`${d}: ${number(one)} · ${number(k[d])}`, one * k[d]]);
    const all = sum(products.map(one => one[1])), under = (s.terms || 1) * q.length;
    return {...largest(products, []), sum: ["sum", all], then: [[`÷ √${number(under)}`, all / Math.sqrt(under)]]};
  }
  if (step.op === "softmax") {
    const before = sources[sources.length - 1], other = before && table(before, head);
    if (!other || other.array.features || other.columns !== view.columns) return null;
    const scores = Array.from({length: other.columns}, (_, j) => other.at(row, j)), most = Math.max(...scores);
    const terms = scores.map((x, j) => [`${other.columns === tokens.length ? tokens[j] : j}: exp(${number(x)} − ${number(most)})`, Math.exp(x - most)]);
    const all = sum(terms.map(one => one[1]));
    return {...largest(terms, []), sum: ["sum", all], then: [[`exp(${number(scores[column])} − ${number(most)}) ÷ sum`, Math.exp(scores[column] - most) / all]]};
  }
  if (step.op === "attend") {
    const weights = table(sources[0], head), rows = weights && weights.columns;
    if (!rows || weights.array.features) return null;
    const terms = [];
    for (let k = 0; k < rows; k++) {
      const v = ofHead(sources[1], k, head);
      if (!v) return null;
      terms.push([`${rows === tokens.length ? tokens[k] : k}: ${number(weights.at(row, k))} · ${number(v[column])}`, weights.at(row, k) * v[column]]);
    }
    return {...largest(terms, []), sum: ["sum", sum(terms.map(one => one[1]))]};
  }
  if (step.op === "norm" || step.op === "new_norm") {
    const x = sources.length && wholeRow(sources[sources.length - 1], row);
    if (!x) return null;
    const mean = sum(x) / x.length, variance = sum(x.map(one => (one - mean) ** 2)) / x.length;
    const [gamma, beta] = ["weight", "bias"].map((key, i) => {
      if (!s[key]) return 1 - i;
      const found = parameter(step.parameters[s.weight ? i : 0]);
      return found ? found.values[found.features ? found.features.indexOf(feature) : feature] : null;
    });
    if (gamma === null || beta === null || gamma === undefined) return null;
    const unit = (x[feature] - mean) / Math.sqrt(variance + s.eps);
    return {terms: [], then: [["x", x[feature]], ["mean μ", mean], ["variance σ²", variance], ["(x − μ) ÷ √(σ² + ε)", unit],
      ["γ", gamma], ["β", beta], ["· γ + β", unit * gamma + beta]]};
  }
  if (step.op === "rms_norm") {
    const all = sources[0] && wholeRow(sources[0], row), gamma = parameter(step.parameters[0]);
    if (!all || !gamma || gamma.features) return null;
    const size = all.length / (s.heads || 1), first = Math.floor(feature / size) * size, x = all.slice(first, first + size);
    const squares = sum(x.map(one => one ** 2)) / size, factor = (s.offset || 0) + gamma.values[feature - first];
    return {terms: [], then: [["x", all[feature]], ["mean of squares", squares], ["x ÷ √(mean + ε)", all[feature] / Math.sqrt(squares + s.eps)],
      [s.offset ? "1 + γ" : "γ", factor], ["product", all[feature] / Math.sqrt(squares + s.eps) * factor]]};
  }
  if (step.op === "scale") {
    const x = value(sources[0], row, feature, head);
    return x === null ? null : {terms: [], then: [["x", x], ["factor", s.factor], ["product", x * s.factor]]};
  }
  if (step.op === "rotate" && s.rates) {
    const x = sources[0] && wholeRow(sources[0], row);
    if (!x) return null;
    const size = x.length / s.heads, j = feature % size, half = size / 2, other = j < half ? feature + half : feature - half;
    const angle = row * s.rates[j % half], sign = j < half ? -1 : 1;
    const cos = (s.scaling || 1) * Math.cos(angle), sin = (s.scaling || 1) * Math.sin(angle);
    return {terms: [[`${number(x[feature])} · cos ${number(angle)}`, x[feature] * cos],
      [`${sign < 0 ? "−" : ""}${number(x[other])} · sin ${number(angle)}`, sign * x[other] * sin]],
      sum: ["sum", x[feature] * cos + sign * x[other] * sin]};
  }
  if (step.op === "embed") return {terms: [], then: [[`${name(1)}, row of ${tokens[row] || row}, column ${feature}`, shown]]};
  return null;
}
// The largest terms by size; the rest is one number, so that what is shown adds up.
function largest(terms, always) {
  const order = [...terms].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])), rest = order.slice(TERMS);
  const kept = [...order.slice(0, TERMS), ...always];
  return {terms: rest.length ? [...kept, [`the other ${rest.length}`, sum(rest.map(one => one[1]))]] : kept};
}

function explain(index, row, column) {
  const board = document.activeElement && document.activeElement.dataset.board;
  Object.assign(chosen, {step: index, row, column});
  const step = steps[index], view = table(step, chosen.head);
  if (view.rows === tokens.length) chosen.token = row;
  draw();
  if (board !== undefined) document.querySelector(`[data-board="${index}"]`)?.focus({preventScroll: true});
}

function say() {
  const place = byId("worked"), step = steps[chosen.step], view = step && table(step, chosen.head);
  if (!view) return;
  const shown = view.at(chosen.row, chosen.column), feature = view.name(chosen.column);
  const where = [view.heads > 1 ? `head ${view.head}` : "", `row ${rowNames(view)[chosen.row]}`,
    square(step, view) ? `column ${tokens[chosen.column]}` : `column ${feature}`].filter(Boolean).join(", ");
  const found = work(step, chosen.row, chosen.column, view.head, shown);
  place.replaceChildren(make("p", {}, make("b", {}, step.output.name), `: ${where}`));
  const rows = make("tbody"), most = found ? Math.max(...found.terms.map(one => Math.abs(one[1])), 1e-30) : 1;
  const line = (name, x, kind) => {
    const bar = make("i");
    if (kind === "term") {
      bar.style.width = 100 * Math.abs(x) / most + "%";
      bar.style.background = `rgb(${shade(Math.sign(x), 1, false).join(" ")})`;
    }
    rows.append(make("tr", {className: kind}, make("th", {scope: "row"}, name), make("td", {className: "bar"}, bar),
      make("td", {className: "number", title: String(x)}, number(x))));
  };
  for (const [name, x] of found ? found.terms : []) line(name, x, "term");
  if (found && found.sum) line(...found.sum, "sum");
  for (const [name, x] of found && found.then || []) line(name, x, "then");
  line("on the page", shown, "sum");
  const last = found && ((found.then && found.then.length && found.then[found.then.length - 1]) || found.sum);
  place.dataset.worked = last ? String(last[1]) : "";
  place.dataset.terms = found && found.terms.length ? String(sum(found.terms.map(one => one[1])) - found.sum[1]) : "";
  place.dataset.shown = String(shown);
  place.append(make("table", {}, rows));
  if (!found) place.append(make("p", {}, "What it was made from is not on this page: --layer chooses another layer, --full keeps everything, or a shorter text fits."));
}

// ----------------------------------------------------------------------------------------------------------- the page

const names = i => i === 0 ? "Embeddings" : i > data.layers ? "Head" : `Layer ${i - 1}`;
function line() {
  const place = byId("line"), before = place.scrollTop;
  place.replaceChildren();
  for (let i = 0; i <= data.layers + 1; i++) {
    const one = lines[i], detail = make("small");
    if (one && tokens.length) {
      const t = chosen.token, most = attended(i, t);
      detail.append(`|x| ${number(one.norms[t])}`, i ? `, cos ${one.cosines[t].toFixed(2)}` : "", most ? make("br") : "", most,
        one.readings.length ? make("br") : "", one.readings.length ? `reads “${one.readings[t][0]}” ${(100 * one.readings[t][1]).toFixed(0)} %` : "");
    }
    place.append(make("button", {type: "button", className: "stop-link", "aria-current": String(i === chosen.stop), onclick: () => open(i)}, names(i), detail));
  }
  place.scrollTop = before;
  const here = place.children[chosen.stop], wide = place.scrollWidth > place.clientWidth;
  if (wide) place.scrollLeft = here.offsetLeft - place.offsetLeft - place.clientWidth / 3;
}
// The token that the chosen one gives most weight to in a layer, over all heads.
function attended(stop, token) {
  const step = steps.find(one => one.stop === stop && isWeights(one) && result(one) && result(one).shape.length === 3);
  const view = step && table(step, 0);
  if (!view || view.columns !== tokens.length || token >= view.rows) return "";
  const shares = tokens.map((_, j) => sum(Array.from({length: view.heads}, (_, h) => table(step, h).at(token, j))) / view.heads);
  const best = shares.indexOf(Math.max(...shares));
  return `→ ${tokens[best]} ${(100 * shares[best]).toFixed(0)} %`;
}
function draw() {
  for (const [i, chip] of [...document.querySelectorAll(".chip")].entries()) chip.setAttribute("aria-pressed", String(i === chosen.token));
  for (const section of document.querySelectorAll(".stop")) section.classList.toggle("open", Number(section.dataset.stop) === chosen.stop);
  for (const place of document.querySelectorAll(".stop.open .picture")) picture(place);
  for (const cell of document.querySelectorAll(".stop.open [data-cell]")) cell.classList.toggle("on",
    cell.closest("[data-board]").dataset.board === String(chosen.step) && cell.dataset.cell === `${chosen.row},${chosen.column}`);
  line();
  say();
}
function open(stop) {
  chosen.stop = Math.max(0, Math.min(data.layers + 1, stop));
  draw();
}
function follow() {
  const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
  const section = target && target.closest(".stop");
  if (!section) return;
  open(Number(section.dataset.stop));
  target.scrollIntoView({block: "start"});
}
byId("tokens").onclick = event => {
  const chip = event.target.closest(".chip");
  if (chip) { chosen.token = Number(chip.dataset.token); draw(); }
};
addEventListener("keydown", event => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "[") open(chosen.stop - 1);
  if (event.key === "]") open(chosen.stop + 1);
});
addEventListener("hashchange", follow);
dark.addEventListener("change", draw);
document.body.classList.add("live");
draw();
follow();
