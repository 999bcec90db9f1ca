"use strict";
// The page on which people try the models. It sends requests to the routes of all clients, shows them, and draws the
// answers. Whatever comes from a model or a text goes in by textContent, never as HTML.

const { models: inPage, keyed } = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

/** An element with properties and children; strings become text. */
function make(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const lines = (text) => text.split("\n").filter((line) => line.trim());
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const plain = (number) => number.toFixed(4);

/** A bar for each [words, share of the width, figure]. */
function bars(rows, kind = "") {
  return make("div", { className: `bars ${kind}` }, ...rows.flatMap(([words, share, figure]) => {
    const bar = make("i");
    bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
    return [make("span", { dir: "auto" }, words), make("span", {}, bar), make("b", {}, figure)];
  }));
}

/** A text with marks at [start, end, label], where characters are counted as Python does. */
function marked(text, marks, hues = new Map()) {
  const characters = [...text], shown = make("p", { className: "text", dir: "auto" });
  let reached = 0;
  for (const [start, end, label] of marks) {
    if (start < reached) continue;
    if (!hues.has(label)) hues.set(label, (hues.size * 67) % 360);
    const mark = make("mark", { className: "of-hue" }, characters.slice(start, end).join(""), make("small", {}, label));
    mark.style.setProperty("--hue", hues.get(label));
    mark.style.setProperty("--shade", 0.6);
    shown.append(characters.slice(reached, start).join(""), mark);
    reached = end;
  }
  shown.append(characters.slice(reached).join(""));
  return shown;
}

function cosines(texts, vectors) {
  const unit = vectors.map((vector) => {
    const length = Math.hypot(...vector) || 1;
    return vector.map((number) => number / length);
  });
  const head = make("tr", {}, make("td"), ...texts.map((_, i) => make("th", { scope: "col" }, String(i))));
  const rows = unit.map((a, i) => make("tr", {}, make("th", { scope: "row", dir: "auto" }, `${i} ${texts[i]}`),
    ...unit.map((b) => {
      const cosine = a.reduce((sum, number, k) => sum + number * b[k], 0), cell = make("td", {}, cosine.toFixed(2));
      cell.style.setProperty("--shade", Math.max(0, cosine));
      return cell;
    })));
  const table = make("table", { className: "grid" }, make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", { className: "wide", tabIndex: 0 }, table);
}

/** The i-th number of an embedding and so on, where there is a single text. */
function beginning(vector) {
  const first = vector.slice(0, 12), largest = Math.max(...vector.map(Math.abs));
  const note = make("p", {}, `The first ${first.length} of ${vector.length} numbers; with several lines, their cosines.`);
  return make("div", {}, note, bars(first.map((number, i) => [String(i), Math.abs(number) / largest, plain(number)])));
}

// The tasks: title, route, fields [name, label, value, rows], the body of a request, and the drawing of its answer.
const EXAMPLE = "A dog ran home.\nThe puppy went back to its house.\nInterest rates rose.";
const TASKS = {
  encode: {
    title: "Compare", path: "/v1/embeddings", fields: [["text", "Texts, one a line", EXAMPLE, 4]],
    body: ({ text }) => ({ input: lines(text) }),
    draw: ({ text }, { data }) => data.length > 1
      ? cosines(lines(text), data.map((one) => one.embedding)) : beginning(data[0].embedding),
  },
  rank: {
    title: "Rank", path: "/v1/rerank",
    fields: [["query", "Query", "a walk with the dog", 1], ["text", "Documents, one a line", EXAMPLE, 5]],
    body: ({ query, text }) => ({ query, documents: lines(text) }),
    draw: ({ text }, { results }) => bars(results.map((one) =>
      [lines(text)[one.index], one.relevance_score, plain(one.relevance_score)]), "texts"),
  },
  classify: {
    title: "Classify", path: "/classify", fields: [["text", "Text", "A warm, funny and moving film.", 3]],
    body: ({ text }) => ({ inputs: text }),
    draw: (_, labels) => bars(labels.map((one) => [one.label, one.score, plain(one.score)])),
  },
  "zero-shot": {
    title: "Labels of your own", path: "/zero-shot",
    fields: [["text", "Text", "They won 3:1.", 3], ["labels", "Labels, separated by commas", "sports, politics", 1]],
    body: ({ text, labels }) => ({ inputs: text, parameters: { candidate_labels: labels.split(",").map((one) => one.trim()) } }),
    draw: (_, { labels, scores }) => bars(labels.map((label, i) => [label, scores[i], percent(scores[i])])),
  },
  "fill-mask": {
    title: "Fill masks", path: "/fill-mask", fields: [["text", "Text with a mask", "She poured a cup of hot [MASK].", 2]],
    body: ({ text }) => ({ inputs: text }),
    draw: (_, answer) => make("div", {}, ...(Array.isArray(answer[0]) ? answer : [answer]).map((mask) =>
      bars(mask.map((one) => [one.token_str, one.score, percent(one.score)])))),
  },
  tag: {
    title: "Entities", path: "/tag", fields: [["text", "Text", "Angela Merkel visited Paris.", 4]],
    body: ({ text }) => ({ inputs: text }),
    draw: ({ text }, entities) => marked(text, entities.map((one) => [one.start, one.end, one.entity_group])),
  },
  entities: {
    title: "Entities of your own", path: "/tag",
    fields: [["text", "Text", "Angela Merkel visited Paris.", 4], ["types", "Types of entities, separated by commas", "person, city", 1]],
    body: ({ text, types }) => ({ inputs: text, parameters: { labels: types.split(",").map((one) => one.trim()) } }),
    draw: ({ text }, entities) => TASKS.tag.draw({ text }, entities),
  },
  answer: {
    title: "Answer", path: "/answer",
    fields: [["question", "Question", "Who wrote it?", 1], ["text", "Context", "The story was written by Anna in 1901.", 6]],
    body: ({ question, text }) => ({ inputs: { question, context: text } }),
    draw: ({ text }, { start, end, answer, score }) => make("div", {},
      answer ? marked(text, [[start, end, percent(score)]]) : make("p", {}, `There is no answer (${percent(score)}).`)),
  },
  score: {
    title: "Score", path: "/score", fields: [["text", "Text", "The children went to school.", 2]],
    body: ({ text }) => ({ inputs: text }),
    draw: (_, { tokens, loss, pseudo_perplexity }) => make("div", {},
      // A text that has a mask itself has a loss alone.
      make("p", {}, pseudo_perplexity !== null ? `Pseudo-perplexity ${pseudo_perplexity.toFixed(2)}` : `Loss ${loss === null ? "–" : loss.toFixed(2)}`),
      bars(tokens.map((one) => [one.token, Math.exp(one.log_prob), percent(Math.exp(one.log_prob))]))),
  },
};
TASKS.late = TASKS.rank;

let models = inPage, model = models[0], task = null, asked = 0;  // with a key there are none before it is given
const kept = {};  // what was typed, by field
const tasksOf = (one) => [...new Set([...one.uses, ...(one.uses[0] === "encode" ? ["rank"] : [])])]
  .filter((use) => TASKS[use] && !(use === "tag" && one.uses.includes("entities")));

/** A text with this model's mask token in place of those of all models; what was typed for another one fits, too. */
const withMask = (text) => model.mask_token === null ? text
  : ["[MASK]", ...models.map((one) => one.mask_token ?? "[MASK]")].reduce((found, mask) => found.replaceAll(mask, model.mask_token), text);

function choose(name, use) {
  model = models.find((one) => one.model_id === name) ?? models[0];
  const uses = tasksOf(model);
  task = uses.includes(use) ? use : uses[0];
  at("tasks").replaceChildren(...uses.map((each) => make("button", {
    type: "button", role: "tab", "aria-selected": String(each === task), tabIndex: each === task ? 0 : -1,
    onclick: () => { choose(model.model_id, each); at("tasks").querySelector("[aria-selected=true]").focus(); },
  }, TASKS[each].title)));
  at("fields").replaceChildren(...TASKS[task].fields.map(([name, words, value, rows]) => {
    const field = rows > 1 ? make("textarea", { rows }) : make("input", { type: "text" });
    Object.assign(field, { id: name, dir: "auto", value: withMask(kept[task + name] ?? value) });
    field.oninput = () => { kept[task + name] = field.value; };
    return make("label", {}, words, field);
  }));
  at("result").replaceChildren();
  at("shown").hidden = true;
}

const typed = () => Object.fromEntries(TASKS[task].fields.map(([name]) => [name, at(name).value]));
const headers = () => (keyed && at("key").value ? { Authorization: `Bearer ${at("key").value}` } : {});

async function run(event) {
  event?.preventDefault();
  const mine = ++asked, { path, body, draw } = TASKS[task], given = typed();
  const sent = { model: model.model_id, ...body(given) };
  at("result").classList.add("waits");
  let drawn, answer;
  try {
    const response = await fetch(path, {
      method: "POST", headers: { "Content-Type": "application/json", ...headers() }, body: JSON.stringify(sent),
    });
    answer = await response.json();
    if (!response.ok) throw new Error(answer.error?.message ?? answer.error);
    drawn = draw(given, answer);
  } catch (error) {
    drawn = make("p", { className: "wrong", role: "alert" }, error.message);
  }
  if (mine !== asked) return;  // a later question has been asked
  at("result").classList.remove("waits");
  at("result").replaceChildren(drawn);
  const quoted = JSON.stringify(sent).replaceAll("'", "'\\''");
  const key = keyed ? ' -H "Authorization: Bearer $KEY"' : "";
  at("curl").textContent = `curl ${location.origin}${path} -H 'Content-Type: application/json'${key} -d '${quoted}'`;
  at("json").textContent = JSON.stringify(answer, (_, value) =>
    Array.isArray(value) && value.length > 40 ? [...value.slice(0, 8), `… ${value.length} in all`] : value, 1);
  at("shown").hidden = false;
}

/** The pass of this text: a page of its own, which asks for other texts itself; with a key it is fetched. */
async function look() {
  const given = typed(), text = task === "encode" ? lines(given.text)[0] ?? "" : given.text;
  const url = `/pass?${new URLSearchParams({ text, model: model.model_id })}`;
  if (!keyed) return void window.open(url);
  const opened = window.open("about:blank"), response = await fetch(url, { headers: headers() });
  opened.location = URL.createObjectURL(await response.blob());
}

function offer(some) {
  models = some;
  at("model").replaceChildren(...models.map((one) => make("option", { value: one.model_id }, one.model_id)));
  for (const id of ["tasks", "fields", "result"]) at(id).replaceChildren();
  at("shown").hidden = true;
  at("ask").hidden = at("model").parentElement.hidden = !models.length;
  if (models.length) choose(models[0].model_id);
}

/** Get the models from /info, with the key that is typed in. */
async function unlock(event) {
  event.preventDefault();
  try {
    const response = await fetch("/info", { headers: headers() }), answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    offer(answer.models);
  } catch (error) {
    offer([]);
    at("result").replaceChildren(make("p", { className: "wrong", role: "alert" }, error.message));
  }
}

at("model").onchange = () => choose(at("model").value, task);
at("tasks").onkeydown = ({ key }) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key], uses = tasksOf(model);
  if (!step) return;
  choose(model.model_id, uses[(uses.indexOf(task) + step + uses.length) % uses.length]);
  at("tasks").querySelector("[aria-selected=true]").focus();
};
at("ask").onsubmit = run;
at("look").onclick = look;
at("ask").onkeydown = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event); };
offer(models);
if (keyed) {
  const key = make("input", { id: "key", type: "password", autocomplete: "current-password", required: true });
  const unlocking = make("button", { type: "submit" }, "Unlock");
  at("bar").prepend(make("form", { id: "unlock", onsubmit: unlock }, make("label", {}, "Key ", key), unlocking));
  const asks = "This server asks for a key: the one that it was started with (--api-key or BERTCLI_API_KEY).";
  at("result").replaceChildren(make("p", {}, asks));
  key.focus();
}
