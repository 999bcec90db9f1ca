"""Routes of transformers' pipelines: each takes texts with the options of a command, and gives the pipeline's shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from bertcli.files.texts import Text
from bertcli.serve.ask import Ask
from bertcli.serve.fields import Refused, described
from bertcli.serve.served import TASKS, Served
from bertcli.serve.vectors import MODEL, Answer, listed

Record = dict[str, Any]
PIPELINES = {  # the tasks of `huggingface_hub.InferenceClient`, with the routes that answer them
    "feature-extraction": "/embed", "sentence-similarity": "/similarity", "text-classification": "/predict",
    "zero-shot-classification": "/zero-shot", "fill-mask": "/fill-mask", "token-classification": "/tag",
    "question-answering": "/answer", "text-ranking": "/rerank",
}  # fmt: skip
OF_USE = {
    "embed": "feature-extraction", "classify": "text-classification", "rank": "text-classification",
    "fill-mask": "fill-mask", "tag": "token-classification", "answer": "question-answering",
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """Texts, and the options of the command of that name, as Python or transformers call them."""

    inputs: str | list[str] | dict[str, Any] | list[dict[str, Any]] | list[list[str]] | list[list[list[str]]] = (
        described("A text, or several; {question, context} for answer, {text, text_pair} for a pair.")
    )
    parameters: dict[str, Any] | None = described("Options of the command.", None)
    model: str | None = described(MODEL, None)
    raw_scores: bool = described("The numbers before the softmax or sigmoid.", False)
    truncate: bool | None = described("Whether a text that is too long is cut, or refused.", None)


SYNONYMS = {  # what transformers' pipelines call our options
    "candidate_labels": "candidates", "hypothesis_template": "template", "function_to_apply": "activation",
    "aggregation_strategy": "aggregation", "ignore_labels": "ignore", "max_answer_len": "max_answer_length",
    "handle_impossible_answer": "no_answer", "doc_stride": "stride", "max_seq_len": "max_length",
}  # fmt: skip
OURS = {"keep_going", "workers", "batch_tokens", "truncation", "pairs", "contexts", "choices"}  # not a request's


def options_of(task: str, wanted: Asked) -> dict[str, Any]:
    """The task's options that a request gives; others, and null, are ignored."""
    names = {item.name for item in fields(TASKS[task][1]) if item.init} - OURS
    given = {SYNONYMS.get(name, name): value for name, value in (wanted.parameters or {}).items() if value is not None}
    options = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items() if name in names
    }
    return {**options, "activation": "none"} if wanted.raw_scores and "activation" in names else options


def texts_of(inputs: Any) -> tuple[list[Text], bool]:
    """The texts, perhaps with second ones, and whether there is a single one that is no list."""
    single = not isinstance(inputs, list)
    values = listed(inputs)
    texts = []
    for index, value in enumerate(values):
        if isinstance(value, dict):
            first, second = value.get("text", value.get("question")), value.get("text_pair", value.get("context"))
        else:
            first, second = (value, None) if isinstance(value, str) else (*value, None, None)[:2]
        if (
            not isinstance(first, str)
            or not isinstance(second, str | None)
            or (isinstance(value, list) and len(value) > 2)
        ):
            raise Refused(422, f"inputs[{index}] is neither a text nor a pair of texts.", "inputs", "wrong_shape")
        texts.append(Text(first, second))
    return texts, single


async def of_task(ask: Ask, served: Served, task: str, wanted: Asked) -> Answer:
    """The task's records in the shape of transformers' pipeline: of a single text, what is in the list of several."""
    texts, single = texts_of(wanted.inputs)
    options = options_of(task, wanted)
    records = await ask.values(served, task, texts, options, truncate=wanted.truncate)
    shaped = [SHAPES[task](record, options) for record in records]
    return shaped[0] if single else shaped


def _answers(record: Record, options: Mapping[str, Any]) -> Answer:
    return record["answers"] if (options.get("top_k") or 1) > 1 else record["answers"][0]


def _masks(record: Record, options: Mapping[str, Any]) -> Answer:
    several = [mask["predictions"] for mask in record["masks"]]
    return several[0] if len(several) == 1 else several


def _labels(record: Record, options: Mapping[str, Any]) -> Answer:
    labels = record["labels"]
    if "candidates" not in options:
        return labels
    return {"sequence": record["text"], **{f"{key}s": [one[key] for one in labels] for key in ("label", "score")}}


SHAPES: dict[str, Callable[[Record, Mapping[str, Any]], Answer]] = {
    "classify": _labels, "fill-mask": _masks, "answer": _answers,
    "tag": lambda record, options: record["entities"], "score": lambda record, options: record,
}  # fmt: skip


async def same_name(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    """The route of the task that is called like the use of a model."""
    return await of_task(ask, served, use, wanted)


async def predict(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    """As text-embeddings-inference has it: a list of two texts is a pair."""
    inputs = wanted.inputs
    if isinstance(inputs, list) and len(inputs) == 2 and all(isinstance(text, str) for text in inputs):
        wanted = replace(wanted, inputs={"text": inputs[0], "text_pair": inputs[1]})
    return await of_task(ask, served, "classify", wanted)


async def zero_shot(ask: Ask, served: Served, use: str, wanted: Asked) -> Answer:
    if "candidates" not in options_of("classify", wanted):
        raise Refused(422, "parameters.candidate_labels is missing.", "parameters.candidate_labels", "missing")
    return await of_task(ask, served, "classify", wanted)


def pipeline_of(body: dict[str, Any], served: Served) -> str:
    """Which task a request is for that names none: what it holds tells, or else what the model was made for."""
    inputs, parameters = body.get("inputs"), body.get("parameters")
    if isinstance(parameters, dict) and parameters.get("candidate_labels") is not None:
        return "zero-shot-classification"
    if isinstance(inputs, dict) and "source_sentence" in inputs:
        return "sentence-similarity"
    if isinstance(inputs, dict) and "question" in inputs:
        return "question-answering"
    use = next((use for use in served.uses if use in OF_USE), None)
    if use is None:
        raise Refused(422, served.refusal("a task of transformers' pipelines"), code="wrong_model")
    return OF_USE[use]


def as_pipeline(task: str, answer: Answer) -> Answer:
    """An answer as InferenceClient parses it: a classifier's in one list more, a candidate with its score."""
    if task == "text-classification":
        return answer if answer and isinstance(answer[0], list) else [answer]
    if task == "zero-shot-classification" and isinstance(answer, dict):
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        return [{"label": label, "score": score} for label, score in pairs]
    return answer
