"""Routes of transformers' pipelines: each takes texts with the options of a command, and gives the pipeline's shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bertcli.errors import shown
from bertcli.files.texts import Text
from bertcli.serve.fields import Refused, asked, fitting, properties
from bertcli.serve.served import page_of_use
from bertcli.serve.service import ROUTES, Answer, Ask, Reading, route
from bertcli.serve.vectors import listed
from bertcli.tasks.registry import specs

Record = dict[str, Any]
ROUTE_OF = {  # the tasks of `huggingface_hub.InferenceClient`, with the routes that answer them
    "feature-extraction": "/embed", "sentence-similarity": "/similarity", "text-classification": "/predict",
    "zero-shot-classification": "/zero-shot", "fill-mask": "/fill-mask", "token-classification": "/tag",
    "question-answering": "/answer", "text-ranking": "/rerank",
}  # fmt: skip
OF_USE = {
    "encode": "feature-extraction", "classify": "text-classification", "rank": "text-classification",
    "fill-mask": "fill-mask", "tag": "token-classification", "answer": "question-answering",
}  # fmt: skip
SYNONYMS = {  # what transformers' pipelines call our options
    "candidate_labels": "candidates", "hypothesis_template": "template", "function_to_apply": "activation",
    "aggregation_strategy": "aggregation", "ignore_labels": "ignore", "max_answer_len": "max_answer_length",
    "handle_impossible_answer": "no_answer", "doc_stride": "stride", "max_seq_len": "max_length",
}  # fmt: skip
OURS = ("keep_going", "workers", "batch_tokens", "truncation")  # not a request's


def parameters_of(use: str) -> dict[str, Any]:
    """The schemas of the options that a request may give, by Python's names."""
    return {name: one for name, one in properties(page_of_use(use).options).items() if name not in OURS}


@dataclass(frozen=True, kw_only=True)
class Texts(Reading):
    """Texts, and the options of the command of that name, as Python or transformers call them."""

    inputs: str | list[str] | dict[str, Any] | list[dict[str, Any]] | list[list[str]] = asked(
        "A text, or several; {question, context} for answer, {text, text_pair} for a pair."
    )
    parameters: dict[str, Any] | None = asked("Options of the command.", None)
    raw_scores: bool = asked("The numbers before the softmax or sigmoid.", False)

    def options(self, use: str) -> dict[str, Any]:
        """Those that are given; others, and null, are ignored. Errors: Refused."""
        offered, options = parameters_of(use), dict[str, Any]()
        if self.raw_scores and "activation" in offered:
            options["activation"] = "none"
        for given, value in (self.parameters or {}).items():
            name = SYNONYMS.get(given, given)
            if value is not None and name in offered:
                checked = fitting(value, offered[name], f"parameters.{given}")
                options[name] = tuple(checked) if isinstance(checked, list) else checked
        if use == "zero-shot" and "candidates" not in options:
            raise Refused(422, "parameters.candidate_labels is missing.", "parameters.candidate_labels", "missing")
        return options


def _text(value: Any, index: int) -> Text:
    """A text, or a pair of texts. Errors: Refused."""
    if isinstance(value, dict):
        value = [value.get("text", value.get("question")), value.get("text_pair", value.get("context"))]
    match value:
        case str():
            return Text(value)
        case [str(), None | str()] | [str()]:
            return Text(*value)
    raise Refused(422, f"inputs[{index}] is neither a text nor a pair of texts.", "inputs", "wrong_shape")


def _labels(record: Record, options: Mapping[str, Any]) -> Answer:
    labels = record["labels"]
    if "candidates" not in options:
        return labels
    return {"sequence": record["text"], **{f"{key}s": [one[key] for one in labels] for key in ("label", "score")}}


def _single(values: list[Answer], whether: bool | None = None) -> Answer:
    """The only value, without a list."""
    return values[0] if (len(values) == 1 if whether is None else whether) else values


SHAPES: dict[str, Callable[[Record, Mapping[str, Any]], Answer]] = {
    "classify": _labels,
    "fill-mask": lambda record, options: _single([mask["predictions"] for mask in record["masks"]]),
    "answer": lambda record, options: _single(record["answers"], options.get("top_k", 1) == 1),
    "tag": lambda record, options: record if options.get("redact") else record["entities"],
    "score": lambda record, options: record,
}


async def answered(ask: Ask, wanted: Texts) -> Answer:
    """The records in the shape of transformers' pipeline: of a single text, what is in the list of several."""
    options = wanted.options(ask.use)
    texts = [_text(value, index) for index, value in enumerate(listed(wanted.inputs))]
    task = page_of_use(ask.use).name
    shaped = [SHAPES[task](record, options) for record in await ask.values(wanted, task, texts, **options)]
    return shaped if isinstance(wanted.inputs, list) else shaped[0]


for _spec in specs():
    if _spec.name in SHAPES:
        route(f"/{_spec.name}", uses=(_spec.name,), summary=(_spec.options.__doc__ or "").partition("\n")[0])(answered)
route("/zero-shot", uses=("zero-shot",), summary="How far a text entails each of your labels.")(answered)


@route("/predict", uses=("classify",))
async def predict(ask: Ask, wanted: Texts) -> Answer:
    """All labels, best first, as text-embeddings-inference has them."""
    match wanted.inputs:
        case [str(first), str(second)]:  # a pair
            wanted = replace(wanted, inputs={"text": first, "text_pair": second})
    return await answered(ask, wanted)


@route("/", "/models/{model:path}/pipeline/{task}", "/pipeline/{task}/{model:path}", "/models/{model:path}")
async def piped(ask: Ask, wanted: Texts) -> Answer:
    """What `huggingface_hub.InferenceClient` asks for: the task of the path, or else of request and model."""
    parameters, inputs = wanted.parameters or {}, wanted.inputs if isinstance(wanted.inputs, dict) else {}
    told = {  # by what is sent
        "zero-shot-classification": "candidate_labels" in parameters,
        "sentence-similarity": "source_sentence" in inputs,
        "question-answering": "question" in inputs,
    }
    body, task = ask.body, ask.request.path_params.get("task") or next((name for name in told if told[name]), None)
    if task is None:
        use = next((use for use in ask.served.uses if use in OF_USE), "")
        body, task = {**body, "model": ask.served.name}, OF_USE.get(use)
    if task not in ROUTE_OF:
        why = f"There is no task {shown(task)}; those there are: {', '.join(ROUTE_OF)}."
        raise Refused(404, why, code="not_found")
    if task == "feature-extraction":
        body = {**parameters, **body}
    answer = await ask.answer(next(one for one in ROUTES if ROUTE_OF[task] in one.paths), body)
    if task == "text-classification" and not isinstance(answer[0], list):
        return [answer]
    if task == "zero-shot-classification" and isinstance(answer, dict):
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        return [{"label": label, "score": score} for label, score in pairs]
    return answer
