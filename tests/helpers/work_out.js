"use strict";
// node work_out.js worked.js: for each line [page.html, MOST, FEW] that it reads it calls workedOut for the cells of
// every step of that page, at most MOST of a step (evenly spread) and FEW of one of the encoder's, and prints a line
// with, for each step, [path, op, section, cells on the page, cells asked for, those worked out, the largest
// |shown - sum| / max(1, |shown|), the cell where it is]. One process for many pages: what it has compiled stays so.
const fs = require("fs"), readline = require("readline");
const begin = new Function("document", fs.readFileSync(process.argv[2], "utf-8") + "\nreturn {data, workedOut};");

function told(page, most, few) {
  const text = fs.readFileSync(page, "utf-8").split('id="data">')[1].split("</script>")[0];
  const {data, workedOut} = begin({getElementById: () => ({textContent: text})});
  return data.steps.filter(step => data.arrays[step.path]).map(step => {
    const {shape: given} = data.arrays[step.path], shape = [...Array(3 - given.length).fill(1), ...given];
    const cells = shape[0] * shape[1] * shape[2], some = step.path.startsWith("encoder.") ? few : most;
    const every = Math.max(1, Math.ceil(cells / some));
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
}

const lines = readline.createInterface({input: process.stdin});
lines.on("line", line => console.log(JSON.stringify(told(...JSON.parse(line)))));
