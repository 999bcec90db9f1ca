"use strict";
// The numbers of a pass, and how each of them came about from others that are on the page. Nothing is drawn here.
//
// `workedOut(path, head, row, column)` is what the panel, the hatching and tests ask. An op has one function in `RULES`.

const data = JSON.parse(document.getElementById("data").textContent);

// ------------------------------------------------------------------------------------------------- what is on the page

const NUMBERS = {f4: Float32Array, u2: Uint16Array};
function decoded(base64, kind = "f4") {
  const letters = atob(base64), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new NUMBERS[kind](bytes.buffer);
}
const own = (record, key) => Object.prototype.hasOwnProperty.call(record, key) ? record[key] : null;
const range = count => Array.from({length: count}, (_, i) => i);
const total = numbers => numbers.reduce((sum, x) => sum + x, 0);

// Thrown where a number would be needed that is not on the page. `kind` is "result" or "weights", `of` the step.
class Missing {
  constructor(kind, of, name) { Object.assign(this, {kind, of, name}); }
}

// One traced pass: its steps, and the numbers that the page holds of it.
class Pass {
  constructor(record, shared = {}) {
    Object.assign(this, {record, steps: record.steps, tokens: record.tokens, heads: record.heads});
    this.parameters = {...shared, ...record.parameters};
    this.byPath = new Map(this.steps.map(step => [step.path, step]));
    this.known = new Map();
  }
  remembered(key, make) {
    if (!this.known.has(key)) this.known.set(key, make());
    return this.known.get(key);
  }

  // A step's result as tables of rows and columns, one for each head, or one alone; null where it is not on the page.
  // `features` are the columns kept, null for all.
  result(step) {
    return this.remembered(step.path, () => {
      const record = own(this.record.arrays, step.path);
      if (!record) return null;
      const shape = record.shape, columns = shape[shape.length - 1], rows = shape.length > 1 ? shape[shape.length - 2] : 1;
      return {rows, columns, heads: shape.length > 2 ? shape[0] : 1, features: record.features || null, values: decoded(record.base64)};
    });
  }
  // A parameter as rows of numbers; `at(i)` is the row with the number i in the model, null where it is not here.
  table(path) {
    return this.remembered("parameter " + path, () => {
      const record = own(this.parameters, path);
      if (!record) return null;
      const values = decoded(record.base64), size = values.length / record.shape[0];
      const places = record.rows && new Map(record.rows.map((row, i) => [row, i]));
      const place = i => places ? places.get(i) : i;
      return {rows: record.shape[0], at: i => {
        const found = place(i);
        return found === undefined || found >= record.shape[0] ? null : values.subarray(found * size, (found + 1) * size);
      }};
    });
  }
  // Of a product's numbers the largest terms: see products.py.
  products(path) {
    return this.remembered("products " + path, () => {
      const record = own(this.record.products, path);
      if (!record) return null;
      const [, cells, terms] = record.shape, rows = new Map(record.rows.map((row, i) => [row, i]));
      const places = decoded(record.places, "u2"), weights = decoded(record.weights), rest = decoded(record.rest);
      return {terms, at: (row, cell) => {
        if (!rows.has(row)) return null;
        const first = rows.get(row) * cells + cell;
        return {places: places.subarray(first * terms, (first + 1) * terms),
                weights: weights.subarray(first * terms, (first + 1) * terms), rest: rest[first]};
      }};
    });
  }
}

// ------------------------------------------------------------------------------------------------- a number's operands

// One number of a step's result, and what the step read: `feature` is the column's number in the whole result.
class Cell {
  constructor(pass, step, head, row, column) {
    const result = pass.result(step);
    Object.assign(this, {pass, step, result, row, column, settings: step.settings});
    this.head = Math.min(head, result.heads - 1);
    this.feature = result.features ? result.features[column] : column;
    this.shown = result.values[(this.head * result.rows + row) * result.columns + column];
  }
  get width() { return this.step.output.shape[this.step.output.shape.length - 1]; }
  // Its place where heads lie side by side.
  get output() { return this.result.heads > 1 ? this.head * this.result.columns + this.column : this.feature; }
  // The name that the trace has for an operand; of two alike, such as a vector turned with itself, the same.
  name(i) { return (this.step.inputs[i] || {name: "x"}).name; }

  // The operand number i: an earlier step, or the path of a parameter.
  source(i) {
    const found = this.step.sources[Math.min(i, this.step.sources.length - 1)];
    return typeof found === "number" ? this.pass.steps[found] : found;
  }
  resultOf(i) {
    const step = this.source(i), result = step && this.pass.result(step);
    if (!result) throw new Missing("result", step, step.output.name);
    return result;
  }
  // One number of an operand, at this row unless another is asked for; an operand of one row has the same for all.
  number(i, row = this.row, feature = this.feature, head = this.head) {
    const result = this.resultOf(i), column = result.features ? result.features.indexOf(feature) : feature;
    if (column < 0) throw new Missing("result", this.source(i), this.source(i).output.name);
    const h = Math.min(head, result.heads - 1), r = result.rows === 1 ? 0 : row;
    return result.values[(h * result.rows + r) * result.columns + column];
  }
  // A whole row of an operand, with heads side by side.
  whole(i, row = this.row) {
    const source = this.source(i);
    if (typeof source === "string") return this.looked(source, row);
    const result = this.resultOf(i), r = result.rows === 1 ? 0 : row;
    if (result.features) throw new Missing("result", source, source.output.name);
    if (result.heads === 1) return result.values.subarray(r * result.columns, (r + 1) * result.columns);
    return this.pass.remembered(`row ${r} of ${source.path}`, () => Float32Array.from(range(result.heads).flatMap(h =>
      [...result.values.subarray((h * result.rows + r) * result.columns, (h * result.rows + r + 1) * result.columns)])));
  }
  // One head's numbers in a row of a query, key or value, whether heads lie side by side or one after the other.
  ofHead(i, row, head = this.head) {
    const size = this.resultOf(i).heads > 1 ? this.resultOf(i).columns : this.whole(i, row).length / this.result.heads;
    return this.whole(i, row).subarray(head * size, (head + 1) * size);
  }
  // The number of a vector of parameters that belongs to this column.
  vector(path, place = this.feature) {
    const table = this.pass.table(path), found = table && table.at(place);
    if (!found) throw new Missing("weights", this.step, path);
    return found[0];
  }
  looked(path, row) {
    const table = this.pass.table(path), found = table && table.at(row);
    if (!found) throw new Missing("weights", this.step, path);
    return found;
  }
  // The parameters of a step that are vectors or matrices beside its operands, from the last on.
  parameterFromEnd(i) { return this.step.parameters[this.step.parameters.length - 1 - i]; }
}

// ----------------------------------------------------------------------------------------------------------- the rules

// What a number was made of: `terms` are added up (their values, and what each is called), `then` are further lines of
// [name, value]; the last of all is what the number comes to.
const made = (values, name, then = []) => ({values, name, then, sum: total(values)});
const lines = then => ({values: [], name: null, then, sum: null});

// erf by its series, and far out, where that is slow, by the continued fraction of 1 - erf; to 1e-12 for double numbers.
function erf(x) {
  const a = Math.abs(x);
  if (a < 2.5) {
    let term = a, sum = a;
    for (let n = 1; Math.abs(term) > 1e-17 * sum; n++) {
      term *= -a * a / n;
      sum += term / (2 * n + 1);
    }
    return Math.sign(x) * 2 / Math.sqrt(Math.PI) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (a + fraction);
  return Math.sign(x) * (1 - Math.exp(-a * a) / Math.sqrt(Math.PI) / (a + fraction));
}
const geluTanh = x => x / 2 * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
const ACTIVATIONS = {
  gelu: x => x / 2 * (1 + erf(x / Math.SQRT2)),
  gelu_new: geluTanh, gelu_pytorch_tanh: geluTanh, gelu_fast: geluTanh,
  relu: x => Math.max(0, x),
  sigmoid: x => 1 / (1 + Math.exp(-x)),
  silu: x => x / (1 + Math.exp(-x)), swish: x => x / (1 + Math.exp(-x)),
  tanh: Math.tanh,
};
const title = activation => activation.split("_")[0];

// A product of a row with a row of a matrix: all its terms, or the largest and the sum of the others.
function multiplied(cell, x, width) {
  const {settings: s, step, pass} = cell, bias = s.bias ? cell.vector(cell.parameterFromEnd(0), cell.output) : null;
  const path = cell.parameterFromEnd(s.bias ? 1 : 0), table = pass.table(path), weights = table && table.at(cell.output);
  const largest = !weights && pass.products(step.path), kept = largest && largest.at(cell.row, cell.output);
  if (!weights && !kept) throw new Missing("weights", step, path);
  const count = weights ? width : kept.places.length, place = i => weights ? i : kept.places[i];
  const factor = i => weights ? weights[i] : kept.weights[i];
  const others = weights || width === count ? [] : [[`the other ${width - count}`, kept.rest]];
  const added = [...others, ...(bias === null ? [] : [["bias b", bias]])];
  const values = new Float64Array(count + added.length);
  for (let i = 0; i < count; i++) values[i] = x(place(i)) * factor(i);
  added.forEach(([, value], i) => { values[count + i] = value; });
  const name = i => i < count ? `${place(i)}: ${number(x(place(i)))} · ${number(factor(i))}` : added[i - count][0];
  const sum = total(values), activation = s.activation;
  return {...made(values, name, activation ? [[`${title(activation)}(${number(sum)})`, ACTIVATIONS[activation](sum)]] : []), always: added.length};
}
function dotted(cell, x, y, under) {
  const sum = made(Float64Array.from(x, (one, d) => one * y[d]), d => `${d}: ${number(x[d])} · ${number(y[d])}`);
  return {...sum, then: [[`÷ √${number(under)}`, sum.sum / Math.sqrt(under)]]};
}
function normed(cell) {
  const x = cell.whole(0), mean = total(x) / x.length, s = cell.settings;
  const variance = x.reduce((sum, one) => sum + (one - mean) ** 2, 0) / x.length;
  const unit = (x[cell.feature] - mean) / Math.sqrt(variance + s.eps);
  const found = [["x", x[cell.feature]], ["mean μ", mean], ["variance σ²", variance], ["(x − μ) ÷ √(σ² + ε)", unit]];
  const gamma = s.weight ? cell.vector(cell.parameterFromEnd(s.bias ? 1 : 0)) : 1, beta = s.bias ? cell.vector(cell.parameterFromEnd(0)) : 0;
  if (s.weight) found.push(["γ", gamma]);
  if (s.bias) found.push(["β", beta]);
  return lines(s.weight || s.bias ? [...found, [["", "· γ"][+!!s.weight] + ["", " + β"][+!!s.bias], unit * gamma + beta]] : found);
}
const looked = (cell, path, row, what) => {
  const value = cell.looked(path, row)[cell.feature];
  return lines([[`${what}, row ${row}, column ${cell.feature}`, value]]);
};
// The place of a distance between tokens in MPNet's and T5's tables of biases, and in DeBERTa's of positions, with the rounding of
// the published code (positions.py).
const single = Math.fround;
function bucketT5(distance, buckets, farthest) {
  const directed = Math.floor(buckets / 2), near = Math.floor(directed / 2);
  const far = Math.abs(distance), scale = single(Math.log(farthest / near));
  const wide = single(single(single(Math.log(single(Math.max(far, 1) / near))) / scale) * (directed - near));
  return (distance < 0 ? directed : 0) + (far < near ? far : Math.min(near + Math.trunc(wide), directed - 1));
}
function bucketDeberta(distance, buckets, table, farthest) {
  let bucket = distance;
  if (buckets > 0) {
    const middle = Math.floor(buckets / 2), far = Math.max(Math.abs(distance), middle - 1);
    const scale = single(Math.log(single((farthest - 1) / middle)));
    const wide = Math.ceil(single(single(single(Math.log(single(far / middle))) / scale) * (middle - 1))) + middle;
    bucket = Math.abs(distance) <= middle ? distance : Math.sign(distance) * wide;
  }
  return Math.max(0, Math.min(table - 1, bucket + Math.floor(table / 2)));
}
function byDistance(cell, row) {
  const distance = cell.row - cell.column, width = cell.resultOf(1).columns;
  const bucket = bucketDeberta(distance, cell.settings.buckets, width, cell.settings.farthest);
  return made([cell.number(0), cell.number(1, row, bucket)], i => i ? `${cell.name(1)} at distance ${distance} (bucket ${bucket})` : cell.name(0));
}
const two = cell => made([cell.number(0), cell.number(1)], i => cell.name(i));
const sameRow = (cell, row, what) => lines([[`${cell.name(0)}, ${what}`, cell.number(0, row)]]);

const RULES = {
  add: two,
  add_bias: two,
  add_row: cell => made([cell.number(0), cell.looked(cell.parameterFromEnd(0), 0)[cell.feature]], i => i ? `${cell.name(1)}, row 0` : cell.name(0)),
  add_by_query: cell => byDistance(cell, cell.row),
  add_by_key: cell => byDistance(cell, cell.column),
  add_alibi: cell => {
    const distance = Math.abs(cell.row - cell.column), slope = cell.settings.slopes[cell.head];
    return made([cell.number(0), -slope * distance], i => i ? `−${number(slope)} · distance ${distance}` : cell.name(0));
  },
  multiply: cell => lines([[cell.name(0), cell.number(0)], [cell.name(1), cell.number(1)], ["product", cell.number(0) * cell.number(1)]]),
  linear: cell => { const x = cell.whole(0); return multiplied(cell, i => x[i], x.length); },
  project: cell => RULES.linear(cell),
  project_heads: cell => RULES.linear(cell),
  // The matrix has the places of the window beside each other for every input.
  convolve: cell => {
    const rows = cell.result.rows, inputs = cell.whole(0, 0).length, wide = cell.step.inputs[1].shape[1];
    const around = range(wide).map(k => cell.row + k - Math.floor(wide / 2)).map(row => row < 0 || row >= rows ? null : cell.whole(0, row));
    return multiplied(cell, i => around[i % wide] ? around[i % wide][Math.floor(i / wide)] : 0, inputs * wide);
  },
  experts: cell => {
    const {top, activation} = cell.settings, x = cell.whole(0), shares = Array.from(cell.whole(1));
    const chosen = range(shares.length).sort((a, b) => shares[b] - shares[a] || a - b).slice(0, top).sort((a, b) => a - b);
    const [inner, outer] = [2, 1].map(i => [cell.parameterFromEnd(i), cell.pass.table(cell.parameterFromEnd(i))]);
    for (const [path, table] of [inner, outer]) if (!table) throw new Missing("weights", cell.step, path);
    const size = cell.step.inputs[2].shape[0] / shares.length;
    const dot = (row, other) => total(Float64Array.from(row, (one, i) => one * other[i]));
    const of = e => total(Float64Array.from(range(size), j => {
      const [w, v] = [inner, outer].map(([, table]) => table.at(e * size + j));
      if (!w || !v) throw new Missing("weights", cell.step, inner[0]);
      return ACTIVATIONS[activation](dot(x, w)) * v[cell.feature];
    }));
    const found = [...chosen.map(e => shares[e] * of(e)), cell.vector(cell.parameterFromEnd(0))];
    return made(found, i => i < chosen.length ? `expert ${chosen[i] + 1}: share ${number(shares[chosen[i]])} · its output` : "bias b");
  },
  scores: cell => {
    const q = cell.ofHead(0, cell.row), k = cell.ofHead(1, cell.column);
    return dotted(cell, q, k, (cell.settings.terms || 1) * q.length);
  },
  bucket_scores: cell => {
    const x = cell.ofHead(0, cell.row), position = cell.ofHead(1, cell.column);
    return dotted(cell, x, position, cell.settings.terms * x.length);
  },
  softmax: cell => {
    const {result} = cell, scores = range(result.columns).map(j => cell.number(0, cell.row, j)), most = Math.max(...scores);
    const of = cell.step.output.symbols.endsWith("S × S") ? cell.pass.tokens : range(result.columns);
    const found = made(scores.map(x => Math.exp(x - most)), j => `${of[j]}: exp(${number(scores[j])} − ${number(most)})`);
    const one = Math.exp(scores[cell.column] - most);
    return {...found, then: [[`${number(one)} ÷ sum`, one / found.sum]]};
  },
  attend: cell => {
    const keys = cell.resultOf(0).columns, tokens = cell.pass.tokens;
    const weights = range(keys).map(k => cell.number(0, cell.row, k)), values = range(keys).map(k => cell.ofHead(1, k)[cell.column]);
    return made(weights.map((x, k) => x * values[k]), k => `${tokens[k]}: ${number(weights[k])} · ${number(values[k])}`);
  },
  concat: cell => {
    const size = cell.resultOf(0).columns, head = Math.floor(cell.feature / size);
    return lines([[`${cell.name(0)}, head ${head + 1}, column ${cell.feature % size}`, cell.number(0, cell.row, cell.feature % size, head)]]);
  },
  repeat_heads: cell => {
    const {heads, of} = cell.settings, size = cell.width / of, head = Math.floor(Math.floor(cell.feature / size) * heads / of);
    return lines([[`head ${head + 1} of ${heads}, column ${cell.feature % size}`, cell.whole(0)[head * size + cell.feature % size]]]);
  },
  norm: normed,
  new_norm: normed,
  rms_norm: cell => {
    const all = cell.whole(0), size = all.length / (cell.settings.heads || 1), first = Math.floor(cell.feature / size) * size;
    const offset = cell.settings.offset || 0, factor = offset + cell.vector(cell.parameterFromEnd(0), cell.feature - first);
    const squares = all.subarray(first, first + size).reduce((sum, one) => sum + one ** 2, 0) / size;
    const x = all[cell.feature], unit = x / Math.sqrt(squares + cell.settings.eps);
    return lines([["x", x], ["mean of squares", squares], ["x ÷ √(mean + ε)", unit], [offset ? "1 + γ" : "γ", factor], ["product", unit * factor]]);
  },
  scale: cell => lines([["x", cell.number(0)], ["factor", cell.settings.factor], ["product", cell.number(0) * cell.settings.factor]]),
  drop_masks: cell => {
    const {ids, mask, trained} = cell.settings, masks = ids.filter(id => id === mask).length;
    const factor = ids[cell.row] === mask ? 0 : (1 - trained) / (1 - masks / ids.length);
    const why = ids[cell.row] === mask ? "a mask: 0" : `(1 − ${trained}) ÷ (1 − ${masks}/${ids.length})`;
    return lines([["x", cell.number(0)], [why, factor], ["product", cell.number(0) * factor]]);
  },
  rotate: cell => {
    const x = cell.whole(0), {heads, inverse_frequencies: rates, scaling = 1} = cell.settings, size = x.length / heads, half = size / 2;
    const j = cell.feature % size, other = j < half ? cell.feature + half : cell.feature - half, sign = j < half ? -1 : 1;
    const angle = cell.row * rates[j % half], scaled = scaling === 1 ? "" : ` · ${number(scaling)}`;
    const values = [scaling * x[cell.feature] * Math.cos(angle), scaling * sign * x[other] * Math.sin(angle)];
    return made(values, i => (i ? `${sign < 0 ? "−" : ""}${number(x[other])} · sin ${number(angle)}` : `${number(x[cell.feature])} · cos ${number(angle)}`) + scaled);
  },
  within: cell => {
    const {window_left: behind, window_right: ahead} = cell.settings, distance = cell.row - cell.column;
    const unseen = distance > (behind ?? Infinity) || -distance > (ahead ?? Infinity);
    return lines([[`${cell.name(0)}, ${Math.abs(distance)} tokens ${distance < 0 ? "ahead" : "behind"}`, cell.number(0)],
      [unseen ? "not seen: −∞" : "seen: as it is", unseen ? -Infinity : cell.number(0)]]);
  },
  relative_bias: cell => {
    const path = cell.parameterFromEnd(0), table = cell.pass.table(path), distance = cell.row - cell.column;
    const bucket = table ? bucketT5(distance, table.rows, cell.settings.farthest) : 0;
    return lines([[`T at distance ${distance} (bucket ${bucket}), head ${cell.head + 1}`, cell.looked(path, bucket)[cell.head]]]);
  },
  embed: cell => looked(cell, cell.parameterFromEnd(0), cell.settings.ids[cell.row], cell.name(1)),
  embed_counted: cell => {
    const {ids, padding} = cell.settings, real = ids.slice(0, cell.row + 1).filter(id => id !== padding).length;
    return looked(cell, cell.parameterFromEnd(0), padding + (ids[cell.row] === padding ? 0 : real), "E_pos");
  },
  gather: cell => {
    const row = (cell.settings.rows || [0])[cell.row] || 0;
    return sameRow(cell, row, `row ${cell.pass.tokens[row]}`);
  },
  last_tokens: cell => {
    const row = Math.max(0, cell.settings.ids.findLastIndex(id => id !== cell.settings.padding));
    return sameRow(cell, row, `row ${cell.pass.tokens[row]}`);
  },
  mean_tokens: cell => {
    const rows = cell.resultOf(0).rows, found = made(range(rows).map(row => cell.number(0, row)), row => cell.pass.tokens[row]);
    return {...found, then: [[`÷ ${rows} tokens`, found.sum / rows]]};
  },
};

// ------------------------------------------------------------------------------------------------- what others may call

const number = x => !Number.isFinite(x) ? String(x).replace("-", "−").replace("Infinity", "∞") : x === 0 ? "0" :
  Math.abs(x) >= 1e5 || Math.abs(x) < 1e-4 ? x.toExponential(3) : String(Number(x.toPrecision(4)));

// How a cell's number came about: what its rule returns, with the number `shown` and what it `comes` to; or where that
// cannot be told from the page, what is `missing`; null for a cell that is not on the page.
function account(pass, path, head, row, column) {
  const step = pass.byPath.get(path), result = step && pass.result(step);
  if (!result || row >= result.rows || column >= result.columns || head >= result.heads) return null;
  const cell = new Cell(pass, step, head, row, column);
  if (!own(RULES, step.op)) return {cell, shown: cell.shown, missing: new Missing("rule", step, step.op)};
  try {
    const found = RULES[step.op](cell);
    return {cell, shown: cell.shown, comes: found.then.length ? found.then[found.then.length - 1][1] : found.sum, ...found};
  } catch (error) {
    if (error instanceof Missing) return {cell, shown: cell.shown, missing: error};
    throw error;
  }
}

const main = new Pass(data), versus = data.versus ? new Pass(data.versus, data.parameters) : null;
globalThis.workedOut = (path, head, row, column) => {
  const found = account(main, path, head, row, column);
  return found && !found.missing ? {shown: found.shown, sum: found.comes} : null;
};
