"use strict";
// Draws each head's attention weights as a small picture in the grid, and the chosen head's large, with the tokens.
const data = JSON.parse(document.getElementById("data").textContent), {tokens} = data, size = tokens.length;
const weights = new Uint8Array(Uint8Array.from(atob(data.weights), letter => letter.charCodeAt(0)).buffer);
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
  place.append(...tokens.map(token => Object.assign(document.createElement("span"), {textContent: token, title: token})));
  return place;
}
function enlarge(button) {
  const place = document.getElementById("large"), canvas = document.createElement("canvas");
  const {layer, head} = button.dataset, caption = document.createElement("figcaption");
  for (const one of document.querySelectorAll("[data-head]")) one.setAttribute("aria-pressed", String(one === button));
  caption.textContent = `${button.title}: from each token (a row) to those it looks at (columns)`;
  paint(canvas, Number(layer), Number(head));
  place.replaceChildren(caption, names("rows"), canvas, names("columns"));
}
function draw() {
  const buttons = [...document.querySelectorAll("[data-head]")];
  for (const button of buttons) {
    paint(button.querySelector("canvas"), Number(button.dataset.layer), Number(button.dataset.head));
    button.onclick = () => enlarge(button);
  }
  enlarge(buttons.find(button => button.getAttribute("aria-pressed") === "true") || buttons[0]);
}
dark.addEventListener("change", draw);
draw();
