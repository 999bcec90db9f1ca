"use strict";
// Draws each head's attention weights as a small picture in the grid, and the chosen head's large, with the tokens.
const data = JSON.parse(document.getElementById("data").textContent), {tokens} = data, size = tokens.length;
const weights = new Uint8Array(Uint8Array.from(atob(data.weights), letter => letter.charCodeAt(0)).buffer);
const NAME = 11;  // pixels that a token's name takes beside a large picture; where there is less room, every second or third is named
const dark = matchMedia("(prefers-color-scheme: dark)");

function paint(canvas, layer, head) {
  const paper = dark.matches ? [22, 22, 26] : [255, 255, 255], full = dark.matches ? [158, 202, 255] : [8, 48, 107];
  const first = (layer * data.heads + head) * size * size, image = new ImageData(size, size);
  for (let i = 0; i < size * size; i++) {
    const strength = (weights[first + i] / 255) ** 0.7;
    image.data.set([...paper.map((c, k) => Math.round(c + strength * (full[k] - c))), 255], 4 * i);
  }
  canvas.width = canvas.height = size;
  canvas.getContext("2d").putImageData(image, 0, 0);
}
function names(kind) {
  const place = document.createElement("div");
  place.className = kind;
  const every = Math.ceil(NAME * size / Math.max(120, document.getElementById("large").clientWidth - 80));
  place.append(...tokens.map((token, i) => Object.assign(document.createElement("span"), {textContent: i % every ? "" : token, title: token})));
  return place;
}
function enlarge(button) {
  const place = document.getElementById("large"), canvas = document.createElement("canvas");
  const {layer, head} = button.dataset, caption = document.createElement("figcaption");
  for (const one of document.querySelectorAll("[data-head]")) one.setAttribute("aria-pressed", String(one === button));
  caption.textContent = `${button.title}: attention weights from each token (row) to the tokens it attends to (columns); the background is 0, the strongest blue 1`;
  paint(canvas, Number(layer), Number(head));
  canvas.onmousemove = event => {
    const at = (part, whole) => Math.max(0, Math.min(size - 1, Math.floor(part / whole * size)));
    const row = at(event.offsetY, canvas.clientHeight), column = at(event.offsetX, canvas.clientWidth);
    const weight = weights[((Number(layer) * data.heads + Number(head)) * size + row) * size + column] / 255;
    canvas.title = `${tokens[row]} → ${tokens[column]}: ${(100 * weight).toFixed(1)} %`;
  };
  place.replaceChildren(caption, names("rows"), canvas, names("columns"));
}
function draw() {
  const buttons = [...document.querySelectorAll("[data-head]")];
  for (const button of buttons) {
    paint(button.querySelector("canvas"), Number(button.dataset.layer), Number(button.dataset.head));
    button.onclick = () => enlarge(button);
  }
  const [layer, head] = data.chosen, first = buttons.find(one => Number(one.dataset.layer) === layer && Number(one.dataset.head) === head);
  enlarge(buttons.find(button => button.getAttribute("aria-pressed") === "true") || first || buttons[0]);
}
dark.addEventListener("change", draw);
draw();
