// How numbers of this kind's ops (ops.py) came about: added to the `RULES` of analysis/trace/worked.js, whose functions
// these are written with.
Object.assign(RULES, {
  gru: cell => {
    const size = cell.width, sigmoid = ACTIVATIONS.sigmoid, j = cell.feature;
    const x = cell.whole(0, 0), y = cell.whole(1, cell.row), h = cell.whole(2, cell.row)[j];
    const r = sigmoid(x[j] + y[j]), z = sigmoid(x[size + j] + y[size + j]), n = Math.tanh(x[2 * size + j] + r * y[2 * size + j]);
    return lines([["r = σ(…)", r], ["z = σ(…)", z], ["n = tanh(…)", n], ["h", h], ["(1 − z) · n + z · h", (1 - z) * n + z * h]]);
  },
  linear_beside: cell => {
    const beside = [...cell.whole(0), ...cell.whole(1)], {activation} = cell.settings;
    const [weight, bias] = [cell.parameterFromEnd(1), cell.parameterFromEnd(0)], row = (cell.pass.table(weight) || {at: () => null}).at(cell.feature);
    if (!row) throw new Missing("weights", cell.step, weight);
    const found = made([...beside.map((one, i) => one * row[i]), cell.vector(bias, cell.feature)],
      i => i < beside.length ? `${i}: ${number(beside[i])} · ${number(row[i])}` : "bias b");
    return activation ? {...found, then: [[`${title(activation)}(${number(found.sum)})`, ACTIVATIONS[activation](found.sum)]]} : found;
  },
});
