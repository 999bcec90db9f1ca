// How numbers of this kind's ops (ops.py) came about: added to the `RULES` of analysis/trace/worked.js, whose functions
// these are written with. A page shows one text: its boundaries and words are counted from 0.
// A number of the result: the sum of the features of a row of a weight, and of a bias.
function affine(cell, features, names) {
  const [weight, bias] = [cell.parameterFromEnd(1), cell.parameterFromEnd(0)], row = (cell.pass.table(weight) || {at: () => null}).at(cell.feature);
  if (!row) throw new Missing("weights", cell.step, weight);
  return made([...features.map((x, i) => x * row[i]), cell.vector(bias, cell.feature)],
    i => i < features.length ? `${names[i]}: ${number(features[i])} · ${number(row[i])}` : "bias b");
}
Object.assign(RULES, {
  gather_or: cell => {
    const row = cell.settings.rows[cell.row];
    return lines([row < 0 ? ["of no word", cell.vector(cell.parameterFromEnd(0), cell.feature)] : [`${cell.name(0)}, row ${row}`, cell.number(0, row)]]);
  },
  pair_prior: cell => {
    const {starts, ends} = cell.settings, x = cell.whole(0, starts[cell.row]), y = cell.whole(1, ends[cell.row]);
    return affine(cell, [x.reduce((sum, one, i) => sum + one * y[i], 0) / Math.sqrt(x.length)], ["x · y ÷ √D"]);
  },
  length_terms: cell => {
    const {starts, ends, words} = cell.settings, length = ends[cell.row] - starts[cell.row];
    return affine(cell, [Math.log1p(length), length / words[0], 1 / Math.sqrt(length)], ["log(1 + n)", "n ÷ w", "1 ÷ √n"]);
  },
  span_means: cell => {
    const {starts, ends} = cell.settings, length = ends[cell.row] - starts[cell.row];
    const rows = range(length).map(i => starts[cell.row] + i);
    return made(rows.map(row => cell.number(0, row) / length), i => `word ${rows[i]}: ${number(cell.number(0, rows[i]))} ÷ ${length}`);
  },
  modulate: cell => {
    const labels = cell.result.rows / cell.resultOf(0).rows, pair = Math.floor(cell.row / labels);
    const by = cell.whole(1, cell.row % labels), width = by.length / 2;
    const x = cell.number(0, pair), gamma = by[cell.feature], beta = by[width + cell.feature];
    return lines([["x", x], ["γ", gamma], ["β", beta], ["x · (1 + γ) + β", x * (1 + gamma) + beta]]);
  },
  pair_logits: cell => {
    const {starts, ends} = cell.settings, [s, e, k] = [starts[cell.row], ends[cell.row], cell.column];
    const root = Math.sqrt(e - s), words = range(e - s).map(i => s + i), labels = cell.whole(0).length;
    const terms = [cell.number(0), cell.whole(1, cell.row * labels + k)[0], cell.number(2, s, k), cell.number(3, e, k)];
    return made([...terms, ...words.map(word => cell.number(4, word, k) / root)],
      i => i < 4 ? cell.name(i) : `inside word ${words[i - 4]} ÷ √${e - s}`);
  },
});
