"use strict";
// node work_out.js worked.js page.html MOST: calls workedOut for the cells of every step, at most MOST of a step (evenly
// spread), and prints for each step [path, op, section, cells on the page, cells asked for, those worked out, the largest
// |shown - sum| / max(1, |shown|), the cell where it is].
const fs = require("fs"), vm = require("vm");
const [script, page, most] = process.argv.slice(2);
const text = fs.readFileSync(page, "utf-8").split('id="data">')[1].split("</script>")[0];
const data = JSON.parse(text);
globalThis.document = {getElementById: () => ({textContent: text})};
vm.runInThisContext(fs.readFileSync(script, "utf-8"));

const found = data.steps.filter(step => data.arrays[step.path]).map(step => {
  const shape = [...Array(3 - data.arrays[step.path].shape.length).fill(1), ...data.arrays[step.path].shape];
  const cells = shape[0] * shape[1] * shape[2], every = Math.max(1, Math.ceil(cells / Number(most)));
  let asked = 0, worked = 0, worst = 0, where = null;
  for (let cell = 0; cell < cells; cell += every) {
    const place = [Math.floor(cell / shape[2] / shape[1]), Math.floor(cell / shape[2]) % shape[1], cell % shape[2]];
    const told = workedOut(step.path, ...place);
    asked++;
    if (!told) continue;
    worked++;
    const error = told.shown === told.sum ? 0 : Math.abs(told.shown - told.sum) / Math.max(1, Math.abs(told.shown));
    if (!(error <= worst)) [worst, where] = [error, place];
  }
  return [step.path, step.op, step.section, cells, asked, worked, String(worst), where];
});
process.stdout.write(JSON.stringify(found));
