"""A route for each task, made from its spec in `bertcli/tasks`: POST /fill-mask, /tag, /answer …

A route takes texts and the options of the task's command, by their names in Python or in transformers' pipelines. It
answers in the shape of the pipeline, which is in the task's spec. A new task has its route without a line here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING
from functools import cache
from types import NoneType
from typing import Any, Union, get_args, get_origin

from pydantic import Field, create_model

from bertcli.files.texts import Text, of_words
from bertcli.tasks.options import declared, types_of
from bertcli.tasks.registry import DOCUMENTS, TaskSpec, specs
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.requests import JsonObject, Listed, Refusal, TruncatingRequest, either
from bertcli.wings.serve.routes import ROUTES, Route
from bertcli.wings.serve.served_model import NOT_OF_A_REQUEST, spec_of_use

# Our options by their names in transformers' pipelines.
PIPELINE_NAMES = {
    "candidate_labels": "candidates", "hypothesis_template": "template", "function_to_apply": "activation",
    "aggregation_strategy": "aggregation", "ignore_labels": "ignore", "max_answer_len": "max_answer_length",
    "handle_impossible_answer": "no_answer", "doc_stride": "stride", "max_seq_len": "max_length",
}  # fmt: skip


class TextsRequest(TruncatingRequest):
    """Texts, and a task's options by their names in Python or in transformers' pipelines."""

    inputs: str | Listed[str] | dict[str, Any] | Listed[dict[str, Any]] | Listed[Listed[str]] = Field(
        description="A text or a list of texts; {question, context} for answer, {text, text_pair} for a pair; "
        "{tokens: [words]} for tag."
    )
    parameters: Any = Field(None, description="Options of the task.")

    def options(self, use: str) -> dict[str, Any]:
        """The options that the request gives. Errors: Refusal, if candidates are missing."""
        parameters: JsonObject | None = self.parameters
        given = {} if parameters is None else parameters.model_dump(exclude_unset=True)
        options: dict[str, Any] = {}
        for name, value in given.items():
            # Hashable, as options on the command line are.
            options[name] = tuple(value) if isinstance(value, list) else value
        if use == "zero-shot" and "candidates" not in options:
            raise Refusal(
                422,
                "parameters.candidate_labels is missing.",
                "parameters.candidate_labels",
                "missing",
            )
        return options


class LabelsRequest(TextsRequest):
    """A request for the labels that a model was trained on."""

    raw_scores: bool = Field(False, description="Return logits: the scores before softmax or sigmoid.")

    def options(self, use: str) -> dict[str, Any]:
        options = super().options(use)
        return {"activation": "none", **options} if self.raw_scores else options


@cache
def request_model(use: str) -> type[TextsRequest]:
    """Make the request class for a use of a model; its parameters are the options of the task."""
    task = spec_of_use(use)
    fields: dict[str, Any] = {}
    for item in declared(task.options):
        if item.name in NOT_OF_A_REQUEST:
            continue
        pipeline_names = [theirs for theirs, ours in PIPELINE_NAMES.items() if ours == item.name]
        described: Any = Field(
            None if item.default is MISSING else item.default,
            ge=item.least,
            description=item.help,
            validation_alias=either(item.name, *pipeline_names),
        )
        fields[item.name] = (_json_type(item.type) | None, described)
    title = "".join(word.title() for word in use.split("-"))
    parameters = create_model(f"{title}Parameters", __base__=JsonObject, **fields)
    field: Any = parameters | None, Field(None, description="Options of the task.")
    base = LabelsRequest if use == "classify" else TextsRequest
    return create_model(f"{title}Request", __base__=base, parameters=field)


def _json_type(hint: Any) -> Any:
    """The type of an option in JSON: a list in place of a sequence."""
    types: list[Any] = []
    for type_ in types_of(hint):
        if get_origin(type_) in (Iterable, Sequence):
            (entry,) = get_args(type_)
            types.append(Listed[entry])  # type: ignore[valid-type]
        elif type_ is not NoneType:
            types.append(type_)
    return Union[tuple(types)]  # noqa: UP007 (of as many as there are)


async def answer_texts(exchange: Exchange, request: TextsRequest) -> Any:
    """The answers in the shape of transformers' pipeline: a list for several texts, its entry for a single one."""
    options = request.options(exchange.use)
    texts = [_text(value, index) for index, value in enumerate(exchange.as_list(request.inputs))]
    task = spec_of_use(exchange.use)
    records = await exchange.values(request, task.name, texts, **options)

    def shape() -> list[Any]:
        return [task.shape(record, options) for record in records]

    answers = await exchange.in_thread(shape, unless=exchange.is_short)
    if isinstance(request.inputs, list):
        return answers
    (answer,) = answers
    return answer


def _text(value: Any, index: int) -> Text:
    """Make a text, or a pair of texts; of a row with words their text. Errors: Refusal."""
    if isinstance(value, dict):
        if (text := of_words(value)) is not None:
            return text
        first = value.get("text", value.get("question"))
        second = value.get("text_pair", value.get("context"))
        value = [first, second]
    match value:
        case str():
            return Text(value)
        case [str(), None | str()] | [str()]:
            return Text(*value)
    raise Refusal(
        422, f"inputs[{index}] must be a text, a pair of texts or {{tokens: [its words]}}.", "inputs", "wrong_shape"
    )


def has_route(task: TaskSpec) -> bool:
    """True if a task gets a route here; vectors and rankings have theirs in the files of several APIs."""
    return task.arrays is None and task.reads is not DOCUMENTS


def declare_tasks() -> None:
    """Declare the route of every task, and that of zero-shot classification, a use of another task."""
    summaries: dict[str, str] = {}
    for task in filter(has_route, specs()):
        summaries[task.name] = (task.options.__doc__ or task.name).partition("\n")[0]
    summaries["zero-shot"] = "Zero-shot classification: the scores of your own labels, which need no training."
    for use, summary in summaries.items():
        declared_route = Route(
            paths=(f"/{use}",),
            answer=answer_texts,
            summary=summary,
            request=request_model(use),
            response=spec_of_use(use),
            uses=(use,),
        )
        ROUTES.append(declared_route)


declare_tasks()
