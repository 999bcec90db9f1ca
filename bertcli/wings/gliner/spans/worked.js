// How numbers of this kind's ops (ops.py) came about: added to the `RULES` of analysis/trace/worked.js, whose functions
// these are written with.
// The states of an LSTM's words in one direction, read from its first word on: h of every step, in its order.
function lstmStates(cell, reverse) {
  const {pass, step} = cell, paths = step.parameters.slice(reverse ? 4 : 0, reverse ? 8 : 4), words = range(cell.result.rows);
  return pass.remembered(`${step.path} ${reverse}`, () => {
    const [input, recurrent] = paths.map(path => pass.table(path));
    if (!input || !recurrent) throw new Missing("weights", step, paths[0]);
    const half = cell.width / 2, dot = (row, other) => row.reduce((sum, one, i) => sum + one * other[i], 0);
    const sigmoid = ACTIVATIONS.sigmoid, states = new Map();
    let h = new Float64Array(half), c = new Float64Array(half);
    for (const word of reverse ? words.reverse() : words) {
      const x = Float64Array.from(cell.whole(0, word));
      const gates = range(4 * half).map(k => dot(x, input.at(k)) + dot(h, recurrent.at(k)) + cell.vector(paths[2], k) + cell.vector(paths[3], k));
      const of = (gate, j) => gates[gate * half + j];
      c = c.map((one, j) => sigmoid(of(1, j)) * one + sigmoid(of(0, j)) * Math.tanh(of(2, j)));
      h = c.map((one, j) => sigmoid(of(3, j)) * Math.tanh(one));
      states.set(word, {h, c, gates});
    }
    return states;
  });
}
Object.assign(RULES, {
  lstm: cell => {
    const half = cell.width / 2, reverse = cell.feature >= half, j = cell.feature % half, of = lstmStates(cell, reverse);
    const {h, c, gates} = of.get(cell.row), before = of.get(cell.row + (reverse ? 1 : -1)), sigmoid = ACTIVATIONS.sigmoid;
    const [entering, kept, candidate, given] = range(4).map(k => gates[k * half + j]);
    return lines([["i = σ(…)", sigmoid(entering)], ["f = σ(…)", sigmoid(kept)], ["g = tanh(…)", Math.tanh(candidate)],
      ["o = σ(…)", sigmoid(given)], [reverse ? "c of the next word" : "c of the word before", before ? before.c[j] : 0],
      ["c = f · c + i · g", c[j]], ["o · tanh(c)", h[j]]]);
  },
  add_pairs: cell => {
    const {starts, ends, activation} = cell.settings, pair = [starts[cell.row], ends[cell.row]];
    const found = made(pair.map((row, i) => cell.number(i, row)), i => `${cell.name(i)}, ${i ? "last" : "first"} word: row ${pair[i]}`);
    return activation ? {...found, then: [[`${title(activation)}(${number(found.sum)})`, ACTIVATIONS[activation](found.sum)]]} : found;
  },
  label_scores: cell => {
    const x = cell.whole(0), label = cell.whole(1, cell.column);
    return made(Float64Array.from(x, (one, d) => one * label[d]), d => `${d}: ${number(x[d])} · ${number(label[d])}`);
  },
});
