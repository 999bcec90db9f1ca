
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const [layers, heads, size] = data.shape, mean = heads;
const bytes = Uint8Array.from(atob(data.weights), letter => letter.charCodeAt(0));
const weights = new DataView(bytes.buffer);  // 16-bit fractions of 1, [layer, head, token, token]
const [layer, head, said, region, matrix] = ["layer", "head", "said", "region", "matrix"].map(
  id => document.getElementById(id));
const canvas = region.querySelector("canvas"), pen = canvas.getContext("2d");
let cell = 20;
const smallest = 20, widest = 56, font = "13px ui-monospace, Menlo, Consolas, monospace", most = 5;
let shown = [], largest = 1, beside = 0, at = null;

function weight(l, h, i, j) {
  return weights.getUint16(2 * (((l * heads + h) * size + i) * size + j), true) / 65535;
}

// The weights of the chosen head, or the mean of all heads.
function choose() {
  const l = layer.selectedIndex, h = head.selectedIndex;
  const chosen = h < mean ? [h] : Array.from({length: heads}, (_, one) => one);
  shown = Array.from({length: size}, (_, i) => Float32Array.from({length: size}, (_, j) =>
    chosen.reduce((sum, one) => sum + weight(l, one, i, j), 0) / chosen.length));
  largest = shown.reduce((most, row) => Math.max(most, ...row), 0) || 1;
  location.replace("#" + l + "." + (h < mean ? h : "mean"));
  document.getElementById("largest").textContent = percent(largest);
  draw();
  if (at) say();
}

// Only the cells in sight are drawn, so that a text may be long; the tokens stay beside and above them.
function draw() {
  const width = region.clientWidth, height = region.clientHeight, sharp = devicePixelRatio || 1;
  pen.font = font;
  const longest = Math.max(...data.pieces.map(piece => pen.measureText(piece).width)) + 12;
  beside = Math.min(longest, width * 0.4, height * 0.4);
  cell = Math.max(smallest, Math.min(widest, Math.floor((width - beside - 2) / size)));
  matrix.style.width = matrix.style.height = beside + cell * size + 1 + "px";
  canvas.width = width * sharp;
  canvas.height = height * sharp;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue(name).trim();
  const left = region.scrollLeft, top = region.scrollTop;
  const seen = (from, room) => [Math.floor(from / cell), Math.min(size, Math.ceil((from + room - beside) / cell))];
  const [firstRow, lastRow] = seen(top, height), [firstColumn, lastColumn] = seen(left, width);
  pen.save();
  pen.beginPath();
  pen.rect(beside, beside, width, height);
  pen.clip();
  pen.font = font;
  for (let i = firstRow; i < lastRow; i++) for (let j = firstColumn; j < lastColumn; j++) {
    const x = beside + j * cell - left, y = beside + i * cell - top;
    pen.fillStyle = `rgb(${color("--shade-of")} / ${(shown[i][j] / largest).toFixed(3)})`;
    pen.fillRect(x, y, cell, cell);
    pen.strokeStyle = color("--line");
    pen.strokeRect(x + 0.5, y + 0.5, cell, cell);
    if (cell > 40) {
      pen.fillStyle = color(shown[i][j] > largest / 2 ? "--paper" : "--ink");
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText((100 * shown[i][j]).toFixed(0), x + cell / 2, y + cell / 2);
    }
    if (at && at[0] === i && at[1] === j) {
      pen.strokeStyle = color("--focus");
      pen.lineWidth = 3;
      pen.strokeRect(x + 2, y + 2, cell - 3, cell - 3);
      pen.lineWidth = 1;
    }
  }
  pen.restore();
  pen.textBaseline = "middle";
  const heading = (text, x, y, turned, on, band) => {
    pen.save();
    pen.beginPath();
    pen.rect(...band);
    pen.clip();
    pen.font = (on ? "bold " : "") + font;
    pen.fillStyle = color("--ink");
    pen.translate(x, y);
    if (turned) pen.rotate(-Math.PI / 2);
    pen.textAlign = turned ? "left" : "right";
    const room = beside - 10;
    let short = text;
    while (short.length > 1 && pen.measureText(short).width > room) short = short.slice(0, -2) + "…";
    pen.fillText(short, 0, 0);
    pen.restore();
  };
  for (let i = firstRow; i < lastRow; i++) {
    heading(data.pieces[i], beside - 6, beside + (i + 0.5) * cell - top, false, at && at[0] === i,
      [0, beside, beside, height]);
  }
  for (let j = firstColumn; j < lastColumn; j++) {
    heading(data.pieces[j], beside + (j + 0.5) * cell - left, beside - 6, true, at && at[1] === j,
      [beside, 0, width, beside]);
  }
}

function percent(value) { return (100 * value).toFixed(1) + " %"; }

function say() {
  const [i, j] = at, order = [...shown[i].keys()].sort((a, b) => shown[i][b] - shown[i][a]).slice(0, most);
  said.textContent = `${data.pieces[i]} → ${data.pieces[j]}: ${percent(shown[i][j])}. Most of ${data.pieces[i]}: ` +
    order.map(k => `${data.pieces[k]} ${percent(shown[i][k])}`).join(", ");
}

function point(i, j) {
  if (at && at[0] === i && at[1] === j) return;
  at = [i, j];
  say();
  draw();
}

for (let l = 0; l < layers; l++) layer.append(new Option(String(l)));
for (let h = 0; h < heads; h++) head.append(new Option(String(h)));
head.append(new Option("mean of all"));
layer.selectedIndex = data.layer;
head.selectedIndex = data.head === null ? mean : data.head;
layer.addEventListener("change", choose);
head.addEventListener("change", choose);
for (const name of ["pointermove", "pointerdown"]) canvas.addEventListener(name, event => {
  const box = canvas.getBoundingClientRect();
  const i = Math.floor((event.clientY - box.top - beside + region.scrollTop) / cell);
  const j = Math.floor((event.clientX - box.left - beside + region.scrollLeft) / cell);
  if (event.clientY - box.top > beside && event.clientX - box.left > beside && i < size && j < size) point(i, j);
});
region.addEventListener("keydown", event => {
  const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
  if (!step) return;
  event.preventDefault();
  const [i, j] = at ? [0, 1].map(axis => Math.min(size - 1, Math.max(0, at[axis] + step[axis]))) : [0, 0];
  const reveal = (now, room, k) => Math.min(k * cell, Math.max(now, (k + 1) * cell + beside - room));
  region.scrollTo(reveal(region.scrollLeft, region.clientWidth, j), reveal(region.scrollTop, region.clientHeight, i));
  point(i, j);
});
region.addEventListener("scroll", draw);
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
choose();
