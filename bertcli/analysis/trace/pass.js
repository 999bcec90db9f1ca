
// ------------------------------------------------------------------------------------------------------ what is chosen

const passes = [main, versus].filter(Boolean), byId = id => document.getElementById(id);
// Layers and heads count from 1 in all that people read, in links and in `data`; `chosen.head` and loops from 0.
// `path` with `row` and `column` is the cell whose number is worked out, of the first pass or of the second.
const chosen = {section: data.layer, token: data.token, head: data.head - 1, pass: 0, path: null, row: 0, column: 0};
const PER_CELL = 16, FEW = 8, TERMS = 12, MANY = 48;

// ------------------------------------------------------------------------------------------------------- words, colors

const short = x => Number.isFinite(x) && Math.abs(x) < 1000 && Math.abs(x) >= 0.001 ? String(Number(x.toPrecision(3))) : number(x);
const sectionName = section => section === 0 ? "Embeddings" : section > data.layers ? "Head" : `Layer ${section}`;
const symbolsOf = step => step.output.symbols.split(" × ");
const isWeights = step => step.op === "softmax";

// Which results have heads side by side: those that scores and weighted sums read, and what these were made from.
function headsBeside(pass) {
  const found = new Set(), reads = ["scores", "attend", "bucket_scores", "rotate", "repeat_heads", "rms_norm"];
  for (const step of [...pass.steps].reverse()) {
    const heads = ["scores", "attend", "bucket_scores"].includes(step.op);
    if (!heads && !found.has(step.index)) continue;
    if (!heads && !reads.includes(step.op)) continue;
    for (const source of step.sources) if (typeof source === "number" && pass.steps[source].output.shape.length === 2) found.add(source);
  }
  return found;
}
for (const pass of passes) {
  const scores = pass.steps.find(step => step.op === "scores");
  pass.beside = headsBeside(pass);
  pass.size = scores ? scores.inputs[0].shape[scores.inputs[0].shape.length - 1] : 0;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const SHADES = {
  light: {paper: [255, 255, 255], below: [190, 40, 30], above: [33, 90, 180], weight: [8, 48, 107], masked: [226, 226, 230]},
  dark: {paper: [22, 22, 26], below: [255, 110, 90], above: [90, 160, 255], weight: [158, 202, 255], masked: [58, 58, 66]},
};
const ALARM = [200, 0, 200];
const shadesNow = () => SHADES[dark.matches ? "dark" : "light"];
let shades = shadesNow();  // kept, for each pixel of a picture asks
function shade(x, largest, weights) {
  if (x === -Infinity) return shades.masked;
  if (!Number.isFinite(x)) return ALARM;
  const strength = Math.min(1, Math.abs(x) / (largest || 1)) ** (weights ? 0.7 : 0.8);
  const full = x < 0 ? shades.below : weights ? shades.weight : shades.above;
  return shades.paper.map((c, i) => Math.round(c + strength * (full[i] - c)));
}
const rgb = color => `rgb(${color.join(" ")})`;
const readable = color => 0.3 * color[0] + 0.6 * color[1] + 0.1 * color[2] > 128 ? "#111" : "#fff";

function make(kind, options = {}, ...content) {
  const found = document.createElement(kind);
  for (const [name, value] of Object.entries(options)) if (name in found) found[name] = value; else found.setAttribute(name, value);
  found.append(...content);
  return found;
}

// ------------------------------------------------------------------------------------------------ a result as a picture

// One table of a result, as it is drawn: of one head, where there are several.
function viewOf(pass, step, head) {
  const result = pass.result(step);
  if (!result) return null;
  const h = Math.min(head, result.heads - 1), {rows, columns} = result, symbols = symbolsOf(step);
  const tokens = pass.tokens, names = own(pass.record.names, step.path);
  const ofTokens = symbol => (symbol || "").startsWith("S");
  const view = {pass, step, rows, columns, heads: result.heads, head: h, features: result.features,
    weights: isWeights(step), square: ofTokens(symbols[symbols.length - 1]) && columns === tokens.length,
    ofTokens: ofTokens(symbols[symbols.length - 2]) && rows === tokens.length,
    bands: pass.beside.has(step.index) && !result.features ? columns / pass.size : 0,
    at: (i, j) => result.values[(h * rows + i) * columns + j]};
  view.rowName = i => view.ofTokens ? tokens[i] : rows === 1 ? "" : String(i);
  view.columnName = j => view.square ? tokens[j] : names ? names[j] : String(result.features ? result.features[j] : j);
  return view;
}
// The second pass less the first, for tokens that stand for each other.
function difference(first, second) {
  if (!first || !second || first.columns !== second.columns && !first.square) return null;
  const pairs = first.ofTokens ? data.pairs : first.rows === second.rows ? range(first.rows).map(i => [i, i]) : [];
  const across = first.square ? data.pairs : range(first.columns).map(j => [j, j]);
  if (!pairs.length || first.features && String(first.features) !== String(second.features)) return null;
  return {...first, pass: null, rows: pairs.length, columns: across.length, weights: false, ofTokens: false, bands: first.bands,
    at: (i, j) => second.at(pairs[i][1], across[j][1]) - first.at(pairs[i][0], across[j][0]),
    rowName: i => first.rowName(pairs[i][0]), columnName: j => first.columnName(across[j][0])};
}
function largestOf(view) {
  let most = 0;
  for (let i = 0; i < view.rows; i++) for (let j = 0; j < view.columns; j++) {
    const x = Math.abs(view.at(i, j));
    if (x > most && x < Infinity) most = x;
  }
  return most;
}
function paint(canvas, view, largest) {
  canvas.width = view.columns;
  canvas.height = view.rows;
  const pen = canvas.getContext("2d"), image = pen.createImageData(view.columns, view.rows);
  for (let i = 0, k = 0; i < view.rows; i++) for (let j = 0; j < view.columns; j++, k += 4) {
    image.data.set(shade(view.at(i, j), largest, view.weights), k);
    image.data[k + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
}

// What a place shows: of the open section a picture is drawn again where that has changed, which a click does to few.
const shows = new Map();
function picture(place) {
  const index = Number(place.dataset.step), card = place.closest(".card"), here = main.steps[index].path === chosen.path;
  const now = [shades === SHADES.dark, chosen.head, chosen.token, ...(here ? [chosen.pass, chosen.row, chosen.column] : [])].join();
  if (shows.get(place) === now) return;
  shows.set(place, now);
  place.replaceChildren();
  card.classList.remove("whole");
  const views = passes.map(pass => viewOf(pass, pass.steps[index], chosen.head)), step = main.steps[index];
  if (!views[0]) {
    if (Object.keys(data.arrays).length) place.append(make("p", {className: "shapes"}, `Its numbers are not on this page: ${remedy(step.section)}`));
    return;
  }
  if (views[0].heads > 1) place.append(thumbnails(views[0]));
  const apart = views.length > 1 ? difference(...views) : null, largest = Math.max(...views.filter(Boolean).map(largestOf));
  const beside = make("div", {className: "beside"});
  place.append(beside);
  card.classList.toggle("both", views.length > 1);
  for (const [i, view] of [...views, apart].entries()) {
    if (!view) continue;
    const one = make("div", {}, ...(views.length > 1 ? [make("p", {className: "which"}, ["First text", "Second text", "Second less first"][i])] : []));
    beside.append(one);
    drawn(one, view, view === apart ? largestOf(view) : largest, card);
    if (isWeights(step) && view.pass && view.square && view.rows <= MANY) one.append(links(view));
  }
}
function drawn(place, view, largest, card) {
  const few = passes.length === 1 && view.columns <= FEW && view.rows <= 2 * FEW, found = few ? figures(view, largest) : board(view, largest);
  place.append(found);
  if (view.pass && own(view.pass.record.names, view.step.path) && view.columns > 2 * FEW) card.classList.add("whole");
  if (!few && view.pass) place.append(numbers(view));
  place.append(legend(view, largest));
}
function legend(view, largest) {
  const scale = make("i"), steps = view.weights ? [0, 1] : [-1, -0.3, 0, 0.3, 1];
  scale.style.background = `linear-gradient(90deg, ${steps.map(x => rgb(shade(x, 1, view.weights))).join(", ")})`;
  const {shape, symbols} = view.step.output, all = shape[shape.length - 1];
  const which = !view.features ? "" : symbols.endsWith("V") ? `the ${view.columns} best of ${all} words` : `the first ${view.columns} of ${all} columns`;
  return make("div", {className: "legend"}, view.weights ? "0" : number(-largest), scale, number(largest), which ? ` ${which}` : "");
}

// The numbers behind a picture, for screen readers and for copying; made when they are opened.
function numbers(view) {
  const place = make("details", {}, make("summary", {}, "Numbers"));
  place.ontoggle = () => {
    if (!place.open || place.querySelector("table")) return;
    const body = make("table", {}, make("tr", {}, make("td"), ...range(view.columns).map(j => make("th", {scope: "col"}, view.columnName(j)))));
    for (let i = 0; i < view.rows; i++) body.append(make("tr", {}, make("th", {scope: "row"}, view.rowName(i)),
      ...range(view.columns).map(j => make("td", {title: String(view.at(i, j))}, number(view.at(i, j))))));
    place.append(make("div", {className: "figures", tabIndex: 0}, body));
  };
  return place;
}

function thumbnails(view) {
  const group = make("div", {className: "heads", role: "group", "aria-label": "Heads"});
  for (let h = 0; h < view.heads; h++) {
    const one = viewOf(view.pass, view.step, h), canvas = make("canvas");
    paint(canvas, one, largestOf(one));
    const high = Math.min(36, Math.max(14, one.rows * 2)), wide = Math.min(60, Math.max(high, one.columns / 2));
    canvas.style.width = wide + "px";
    canvas.style.height = high + "px";
    group.append(make("button", {type: "button", title: `Head ${h + 1}`, "aria-label": `Head ${h + 1}`,
      "aria-pressed": String(h === view.head), onclick: () => choose({head: h})}, canvas));
  }
  return group;
}

// Small enough to print every number.
function figures(view, largest) {
  const grid = make("table", {tabIndex: 0, "aria-label": view.step.output.name});
  grid.append(make("tr", {}, make("td"), ...range(view.columns).map(j => make("th", {scope: "col"}, view.columnName(j)))));
  for (let i = 0; i < view.rows; i++) {
    const line = make("tr", {}, make("th", {scope: "row"}, view.rowName(i)));
    for (let j = 0; j < view.columns; j++) {
      const color = shade(view.at(i, j), largest, view.weights);
      const cell = make("td", {title: String(view.at(i, j))}, short(view.at(i, j)));
      cell.style.background = rgb(color);
      cell.style.color = readable(color);
      if (view.pass) {
        cell.onclick = () => explain(view, i, j);
        if (cannot(view, i, j)) cell.classList.add("hatched");
        cell.classList.toggle("on", isChosen(view) && chosen.row === i && chosen.column === j);
      }
      line.append(cell);
    }
    grid.append(line);
  }
  if (view.pass) moves(grid, view);
  return make("div", {className: "figures"}, grid);
}

const isChosen = view => chosen.path === view.step.path && passes[chosen.pass] === view.pass;
const cannot = (view, i, j) => !!account(view.pass, view.step.path, view.head, i, j).missing;

function board(view, largest) {
  const canvas = make("canvas"), {rows, columns} = view;
  paint(canvas, view, largest);
  const high = Math.max(rows === 1 ? 24 : 2, Math.min(PER_CELL, 480 / rows)), named = high >= 9;
  const edge = make("div", {className: "board"}, canvas);
  edge.style.height = rows * high + 2 + "px";
  const isToken = i => view.pass && i === tokenIn(view.pass), on = i => view.ofTokens && isToken(i) ? "on" : "";
  const beside = make("div", {className: "rows"});
  if (named) for (const i of range(rows)) beside.append(make("span", {className: on(i), title: view.rowName(i)}, view.rowName(i)));
  const frame = make("div", {className: "frame"}, beside, edge), below = make("div", {className: "columns"});
  const words = own(view.pass ? view.pass.record.names : {}, view.step.path) && columns <= MANY;
  if ((view.square || words) && named) {
    edge.style.width = below.style.width = `min(100%, ${columns * 30}px)`;
    below.append(...range(columns).map(j => make("span", {className: view.square && isToken(j) ? "word on" : "word", title: view.columnName(j)}, view.columnName(j))));
  } else if (view.bands > 1) {
    edge.append(borders(view));
    below.append(...range(view.bands).map(h => make("button", {type: "button", "aria-pressed": String(h === bandOf(view)),
      title: `Head ${h + 1}`, onclick: () => choose({head: Math.round(h * view.pass.heads / view.bands)})}, String(h + 1))));
    frame.append(make("small", {}, "head"));
  } else {
    const number = j => String(view.features ? view.features[j] : j);
    below.classList.add("ticks");
    below.append(make("span", {}, number(0)), make("span", {}, columnsAre(view)), make("span", {}, columns > 1 ? number(columns - 1) : ""));
  }
  frame.append(below);
  const set = (element, i, j, w) => Object.assign(element.style, {
    top: 100 * i / rows + "%", height: 100 / rows + "%", left: 100 * j / columns + "%", width: 100 * w / columns + "%"});
  const mark = (kind, i, j, w) => { const found = make("div", {className: "mark " + kind}); set(found, i, j, w); edge.append(found); };
  if (view.ofTokens && view.pass && tokenIn(view.pass) !== undefined) mark("row", tokenIn(view.pass), 0, columns);
  if (!view.pass) return frame;
  if (isChosen(view) && chosen.row < rows && chosen.column < columns) mark("", chosen.row, chosen.column, 1);
  Object.assign(edge, {tabIndex: 0});
  edge.setAttribute("role", "application");
  edge.setAttribute("aria-label", `${view.step.output.name}, ${rows} by ${columns}: arrow keys move, Enter explains`);
  edge.onclick = event => {
    const box = edge.getBoundingClientRect();
    explain(view, Math.max(0, Math.min(rows - 1, Math.floor((event.clientY - box.top) / box.height * rows))),
      Math.max(0, Math.min(columns - 1, Math.floor((event.clientX - box.left) / box.width * columns))));
  };
  moves(edge, view);
  hatch(edge, view);
  return frame;
}
const columnsAre = view => own(view.pass ? view.pass.record.names : {}, view.step.path) ? "words" : view.square ? "tokens" :
  ({F: "units of the feed-forward layer", D: "numbers of one head", K: "distances"})[symbolsOf(view.step).pop()] || "features";
// The token that is chosen: in the second text the one that stands for it, if there is one.
const tokenIn = pass => pass === main ? chosen.token : (data.pairs.find(pair => pair[0] === chosen.token) || [])[1];
// The head whose keys or values the chosen head reads, where there are fewer of them.
const bandOf = view => Math.floor(chosen.head * view.bands / (view.pass || main).heads);
function borders(view) {
  const place = make("div", {className: "bands"});
  for (const h of range(view.bands)) {
    const band = make("i", {className: h === bandOf(view) ? "on" : ""});
    Object.assign(band.style, {left: 100 * h / view.bands + "%", width: 100 / view.bands + "%"});
    place.append(band);
  }
  return place;
}

// Stripes over the cells that cannot be worked out; in the time that the browser has left, since each is tried.
const stripes = (() => {
  const canvas = make("canvas", {width: 6, height: 6}), pen = canvas.getContext("2d");
  pen.strokeStyle = "rgb(128 128 128 / .8)";
  pen.lineWidth = 1.2;
  for (const x of [-6, 0, 6]) { pen.beginPath(); pen.moveTo(x - 1, 7); pen.lineTo(x + 7, -1); pen.stroke(); }
  return canvas;
})();
function hatch(edge, view) {
  const key = `hatched ${view.step.path} ${view.head}`, found = view.pass.remembered(key, () => ({done: 0, runs: []}));
  const later = window.requestIdleCallback || (work => setTimeout(() => work({timeRemaining: () => 20}), 20));
  const show = () => {
    if (!found.runs.length || !edge.isConnected) return;
    const canvas = make("canvas", {className: "hatch"}), {width, height} = edge.getBoundingClientRect();
    canvas.width = Math.max(1, width);
    canvas.height = Math.max(1, height);
    const pen = canvas.getContext("2d");
    pen.fillStyle = pen.createPattern(stripes, "repeat");
    for (const [row, from, to] of found.runs) pen.fillRect(from / view.columns * width, row / view.rows * height,
      (to - from) / view.columns * width, height / view.rows);
    canvas.title = "Striped numbers cannot be worked out from this page";
    edge.prepend(canvas);
    edge.closest(".picture").classList.add("has-hatched");
  };
  const work = deadline => {
    while (found.done < view.rows && deadline.timeRemaining() > 2) {
      const row = found.done++;
      for (let j = 0, from = -1; j <= view.columns; j++) {
        const missing = j < view.columns && cannot(view, row, j);
        if (missing && from < 0) from = j;
        if (!missing && from >= 0) { found.runs.push([row, from, j]); from = -1; }
      }
    }
    if (found.done < view.rows) { if (edge.isConnected) later(work); } else show();
  };
  later(work);
}

// Lines from each token to those it looks at, for the chosen head; those of the chosen token stand out.
function links(view) {
  const high = 18, left = 96, wide = 300, space = "http://www.w3.org/2000/svg";
  const shape = (kind, options, text) => {
    const found = document.createElementNS(space, kind);
    for (const [name, value] of Object.entries(options)) found.setAttribute(name, value);
    if (text !== undefined) found.textContent = text;
    return found;
  };
  const token = tokenIn(view.pass), tokens = view.pass.tokens;
  const svg = shape("svg", {viewBox: `0 0 ${wide} ${high * view.rows + 4}`, class: "links", role: "img",
    "aria-label": `Where each token looks, head ${view.head + 1}`});
  for (let i = 0; i < view.rows; i++) for (let j = 0; j < view.columns; j++) {
    const x = view.at(i, j);
    if (!(x > 0.02)) continue;
    svg.append(shape("line", {x1: left, y1: high * (i + .5), x2: wide - left, y2: high * (j + .5), class: i === token ? "on" : "",
      "stroke-width": (0.5 + 3 * x).toFixed(2), "stroke-opacity": (i === token ? 0.25 + 0.75 * x : 0.45 * x).toFixed(3)}));
  }
  const clipped = name => [...name].length > 12 ? [...name].slice(0, 11).join("") + "…" : name;
  tokens.forEach((name, i) => {
    const y = high * (i + .5) + 4, from = shape("text", {x: left - 6, y, "text-anchor": "end", class: i === token ? "on" : ""}, clipped(name));
    if (view.pass === main) from.onclick = () => choose({token: i});
    svg.append(from, shape("text", {x: wide - left + 6, y}, clipped(name)));
  });
  return make("figure", {className: "linked"}, make("figcaption", {}, `Head ${view.head + 1}: from each token (left) to those it looks at (right)`), svg);
}

function moves(element, view) {
  element.dataset.board = `${passes.indexOf(view.pass)} ${view.step.index}`;
  element.onkeydown = event => {
    const by = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Enter: [0, 0]}[event.key];
    if (!by) return;
    event.preventDefault();
    const here = isChosen(view) ? [chosen.row, chosen.column] : [view.ofTokens ? tokenIn(view.pass) || 0 : 0, 0];
    explain(view, Math.max(0, Math.min(view.rows - 1, here[0] + by[0])), Math.max(0, Math.min(view.columns - 1, here[1] + by[1])));
  };
}

// ------------------------------------------------------------------------------------------- one number, worked out

function explain(view, row, column) {
  const focused = document.activeElement && document.activeElement.dataset.board;
  const next = {pass: passes.indexOf(view.pass), path: view.step.path, row, column};
  if (view.ofTokens && view.pass === main) next.token = row;
  if (view.bands > 1) next.head = Math.floor(Math.floor(column / view.pass.size) * view.pass.heads / view.bands);
  choose(next);
  if (focused !== undefined) document.querySelector(`[data-board="${focused}"]`)?.focus({preventScroll: true});
}

// Where a cell is, in words: never a number alone for what has a name.
function whereabouts(view, row, column) {
  const size = view.pass.size, parts = [], feature = view.features ? view.features[column] : column;
  if (view.heads > 1) parts.push(`head ${view.head + 1}`);
  parts.push(view.ofTokens ? `row “${view.rowName(row)}” (token ${row})` : view.rows === 1 ? "its only row" : `row ${row}`);
  const named = view.square || own(view.pass.record.names, view.step.path);
  if (named) parts.push(view.square ? `column “${view.columnName(column)}” (token ${column})` : `column “${view.columnName(column)}”`);
  else if (view.bands > 1) parts.push(`column ${column % size} of head ${1 + Math.floor(column / size)}`);
  else parts.push(symbolsOf(view.step).pop() === "F" ? `unit ${feature}` : `column ${feature}`);
  return parts.join(", ");
}

// What to do about a number that cannot be worked out here: only what helps.
function remedy(section, head) {
  if (data.ask) return [make("a", {href: asked({layer: Math.min(section, data.layers), head: 1 + (head ?? chosen.head)})}, "have it worked out"), "."];
  const other = section >= 1 && section <= data.layers && section !== data.layer, ofHead = head !== undefined && !other && head + 1 !== data.head;
  const layer = other ? `--layer ${section}` : ofHead ? `--layer ${data.layer}.${head + 1}` : "";
  return `${layer ? `${layer} puts it on the page` : "a shorter text leaves room for it"}; or bertcli serve has a page that works out any number.`;
}
function asked(changes) {
  const url = new URL(data.ask, location.href), box = byId("ask");
  for (const [name, value] of new URLSearchParams(location.search)) url.searchParams.set(name, value);  // a second text, too
  const all = {text: box ? box.elements.text.value : "", layer: chosen.section, head: chosen.head + 1, token: chosen.token, ...changes};
  for (const [name, value] of Object.entries(all)) url.searchParams.set(name, value);
  return url.href.split("#")[0] + hash();
}
function cause(found, view) {
  const {kind, of, name} = found.missing, layer = sectionName(of && of.section !== undefined ? of.section : chosen.section);
  if (kind === "rule") return `This page does not know how the operation ${name} works.`;
  if (kind === "result") return `It was made from “${name}” (${layer.toLowerCase()}), of which only some columns are on this page.`;
  const word = (of.inputs[of.inputs.length - 1] || {name}).name;  // parameters come after data
  return `The weights ${word} of ${layer === "Head" ? "the head" : layer.toLowerCase()} that belong to this number are not on this page.`;
}

function say() {
  const place = byId("worked"), pass = passes[chosen.pass], step = chosen.path && pass.byPath.get(chosen.path);
  const view = step && viewOf(pass, step, chosen.head);
  const found = view && account(pass, chosen.path, view.head, chosen.row, chosen.column);
  for (const name of ["worked", "terms", "shown"]) delete place.dataset[name];
  if (!found) {
    place.replaceChildren(make("p", {}, "Choose a cell of a picture to see how its number is computed."));
    return;
  }
  const which = passes.length > 1 ? ["First text, ", "Second text, "][chosen.pass] + sectionName(step.section).toLowerCase() : sectionName(step.section);
  place.replaceChildren(make("p", {}, make("b", {}, `${which}: ${step.output.name}`), make("br"), whereabouts(view, chosen.row, chosen.column)));
  const rows = make("tbody"), order = found.values ? ordered(found) : [];
  const most = Math.max(...order.map(term => Math.abs(term[1])), 1e-30);
  const line = (name, x, kind) => {
    const bar = make("i");
    if (kind === "term") {
      bar.style.width = 100 * Math.min(1, Math.abs(x) / most) + "%";
      bar.style.background = rgb(shade(Math.sign(x), 1, false));
    }
    rows.append(make("tr", {className: kind}, make("th", {scope: "row"}, name), make("td", {className: "bar"}, bar),
      make("td", {className: "number", title: String(x)}, number(x))));
  };
  for (const [name, x] of order) line(name, x, "term");
  if (found.sum !== null && found.sum !== undefined) line("sum", found.sum, "sum");
  for (const [name, x] of found.then || []) line(name, x, "then");
  line("on the page", found.shown, "sum");
  const head = make("thead", {}, make("tr", {}, ...["Made of", "", "Number"].map((name, i) => make("th", {scope: "col", className: i === 2 ? "number" : ""}, name))));
  place.dataset.shown = String(found.shown);
  place.dataset.worked = found.missing ? "" : String(found.comes);
  place.dataset.terms = order.length ? String(total(order.map(term => term[1])) - found.sum) : "";
  place.append(make("table", {}, head, rows));
  if (found.missing) place.append(make("p", {className: "missing"}, cause(found, view), " ", "To have it: ", ...[remedy(found.missing.of.section ?? step.section, bandHead(view))].flat()));
}
const bandHead = view => view.bands > 1 ? Math.floor(Math.floor(chosen.column / view.pass.size) * view.pass.heads / view.bands) : undefined;
// The largest terms, what is left of them as one, and what always stands alone, such as a bias.
function ordered(found) {
  const {values, name, always = 0} = found, count = values.length - always;
  const order = range(count).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])), rest = order.slice(TERMS);
  const terms = order.slice(0, TERMS).map(i => [name(i), values[i]]);
  if (rest.length) terms.push([`the other ${rest.length}`, total(rest.map(i => values[i]))]);
  return [...terms, ...range(always).map(i => [name(count + i), values[count + i]])];
}

// ----------------------------------------------------------------------------------------------------------- the page

// What has become of the chosen token at each section.
const KEY = [["|x|", "length of its vector"], ["cos", "cosine with the state one layer before: 1 is unchanged"],
  ["→", "the token with most attention weight, mean of the heads"], ["reads", "what the prediction head would predict here"]];
function line() {
  const place = byId("line"), sections = make("div", {className: "sections"});
  for (let i = 0; i <= data.layers + 1; i++) {
    const one = data.lines[i], detail = make("small");
    const says = text => { if (text) detail.append(...(detail.childNodes.length ? [make("br")] : []), text); };
    if (one && main.tokens.length) {
      const t = chosen.token;
      says(`|x| ${number(one.norms[t])}` + (i ? `, cos ${one.cosines[t].toFixed(2)}` : ""));
      says(attended(i, t));
      says(one.readings.length ? `reads “${one.readings[t][0]}” ${(100 * one.readings[t][1]).toFixed(0)} %` : "");
      says(beside(i, t));
    }
    sections.append(make("button", {type: "button", className: "section-link", "aria-current": String(i === chosen.section), onclick: () => open(i)}, sectionName(i), detail));
  }
  place.replaceChildren(sections);
  if (data.lines.length) {
    const words = [...KEY.slice(0, data.lines[0].readings.length ? 4 : 3), ...(versus ? [["2nd", "cosine with the second text's token"]] : [])];
    place.append(make("dl", {className: "key"}, ...words.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])));
  }
}
// The token that the chosen one gives most weight to in a layer, over all heads.
function attended(section, token) {
  const step = main.steps.find(one => one.section === section && isWeights(one)), view = step && viewOf(main, step, 0);
  if (!view || !view.square || token >= view.rows) return "";
  const views = range(view.heads).map(h => viewOf(main, step, h));
  const shares = main.tokens.map((_, j) => total(views.map(one => one.at(token, j))) / view.heads);
  const best = shares.indexOf(Math.max(...shares));
  return best < 0 ? "" : `→ ${main.tokens[best]} ${(100 * shares[best]).toFixed(0)} %`;
}
// How alike the vectors of a token are in the two texts, where a section ends.
function beside(section, token) {
  const other = versus && (data.pairs.find(pair => pair[0] === token) || [])[1];
  if (other === undefined || other === null || other === false) return "";
  const last = pass => pass.steps.filter(step => step.section === section && symbolsOf(step).join() === "S,H").pop();
  const [a, b] = passes.map(pass => last(pass) && viewOf(pass, last(pass), 0));
  if (!a || !b || a.features || b.features) return "";
  const dot = (x, i, y, j) => total(range(a.columns).map(k => x.at(i, k) * y.at(j, k)));
  return `2nd cos ${(dot(a, token, b, other) / Math.sqrt(dot(a, token, a, token) * dot(b, other, b, other))).toFixed(2)}`;
}

// What goes by the sizes of what was drawn. All are read before any is set: a browser that is asked for a size after a
// change lays the whole page out.
function fit(scrolled) {
  const place = byId("line"), sections = place.querySelector(".sections"), here = sections.children[chosen.section];
  const printed = [...document.querySelectorAll(".section.open .figures:not(details *)")];
  const wide = printed.filter(found => found.scrollWidth > found.clientWidth);
  const left = sections.scrollWidth > sections.clientWidth ? here.offsetLeft - sections.offsetLeft - sections.clientWidth / 3 : 0;
  for (const found of wide) found.closest(".card").classList.add("whole");
  place.scrollTop = scrolled;
  sections.scrollLeft = left;
}

function draw() {
  const scrolled = byId("line").scrollTop;
  const paired = new Set((data.pairs || []).filter(([i, j]) => main.tokens[i] === versus.tokens[j]).flatMap(([i, j]) => [`0 ${i}`, `1 ${j}`]));
  for (const [which, id] of ["tokens", "versus-tokens"].entries()) for (const [i, chip] of [...document.querySelectorAll(`#${id} .chip`)].entries()) {
    chip.setAttribute("aria-pressed", String(i === tokenIn(passes[which])));
    chip.classList.toggle("differs", !!versus && !paired.has(`${which} ${i}`));
  }
  for (const section of document.querySelectorAll(".section")) section.classList.toggle("open", Number(section.dataset.section) === chosen.section);
  const places = document.querySelectorAll(".section.open .picture");
  if (!shows.has(places[0])) shows.clear();  // another section was opened
  for (const place of places) picture(place);
  line();
  say();
  fit(scrolled);
}
function choose(changes) {
  Object.assign(chosen, changes);
  draw();
  history.replaceState(null, "", hash());
}
function hash() {
  const place = chosen.path || `section-${chosen.section}`, cell = chosen.path ? `,${chosen.row},${chosen.column}` + (chosen.pass ? ",1" : "") : "";
  return `#${encodeURIComponent(place)}@${chosen.head + 1}${cell}`;
}
// The panel follows to the step of the same name in the layer that is opened, or empties.
function open(section) {
  const next = Math.max(0, Math.min(data.layers + 1, section)), pass = passes[chosen.pass];
  const path = chosen.path && chosen.path.replace(/\blayers\.\d+\b/, `layers.${next - 1}`);
  const same = path && pass.byPath.get(path), kept = same && same.section === next && pass.result(same);
  const fits = kept && chosen.row < kept.rows && chosen.column < kept.columns;
  choose({section: next, path: fits ? path : null});
}
function follow() {
  const [place, cell] = location.hash.slice(1).split("@"), target = place && byId(decodeURIComponent(place));
  const section = target && target.closest(".section");
  if (!section) return;
  const [head, row, column, pass] = (cell || "").split(",").map(Number), step = main.byPath.get(decodeURIComponent(place));
  const next = {section: Number(section.dataset.section)};
  if (Number.isInteger(head) && cell) next.head = Math.max(0, Math.min(head, data.heads) - 1);
  if (step && Number.isInteger(row) && Number.isInteger(column)) Object.assign(next, {path: step.path, row, column, pass: pass && versus ? 1 : 0});
  if (next.path && !next.pass && step.output.shape.length > 1 && row < main.tokens.length && viewOf(main, step, 0)?.ofTokens) next.token = row;
  Object.assign(chosen, next);
  draw();
  target.scrollIntoView({block: "start"});
}
for (const [which, id] of ["tokens", "versus-tokens"].entries()) if (byId(id)) byId(id).onclick = event => {
  const chip = event.target.closest(".chip"), token = chip && Number(chip.dataset.token);
  if (chip) choose({token: which ? (data.pairs.find(pair => pair[1] === token) || [chosen.token])[0] : token});
};
if (byId("ask")) byId("ask").onsubmit = event => {
  event.preventDefault();
  location.assign(asked({}));
};
addEventListener("keydown", event => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "[") open(chosen.section - 1);
  if (event.key === "]") open(chosen.section + 1);
});
addEventListener("hashchange", follow);
dark.addEventListener("change", () => {
  shades = shadesNow();
  draw();
});
document.body.classList.add("live");
// What stays at the top is as high as the texts and results in it: what stays below it begins there.
new ResizeObserver(() => document.documentElement.style.setProperty("--top", byId("top").offsetHeight + "px")).observe(byId("top"));
// The panel begins with the weight that the chosen token gives to the token it attends to most, where it has a column.
function begin() {
  if (!matchMedia("(min-width: 1101px)").matches) return;
  const step = main.steps.find(one => one.section === chosen.section && isWeights(one)), view = step && viewOf(main, step, chosen.head);
  if (location.hash || !view || !view.square || chosen.token >= view.rows) return;
  const shares = range(view.columns).map(j => view.at(chosen.token, j));
  Object.assign(chosen, {path: step.path, row: chosen.token, column: shares.indexOf(Math.max(...shares))});
}
begin();
draw();
follow();
