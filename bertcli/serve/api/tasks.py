"""A route for each task, made from its spec in `bertcli/tasks`: POST /fill-mask, /tag, /answer …

It takes texts with the options of the command, by Python's names or by those of transformers' pipelines, and gives each
record in the shape that the spec has for it, which is the pipeline's. A new task has its route without a line here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING
from functools import cache
from types import NoneType
from typing import Any, Union, get_args, get_origin

from pydantic import Field, create_model

from bertcli.files.texts import Text
from bertcli.serve.exchange import Exchange
from bertcli.serve.requests import JsonObject, Listed, Refusal, TruncatingRequest, either
from bertcli.serve.routes import ROUTES, Route
from bertcli.serve.served import spec_of_use
from bertcli.tasks.options import declared, kinds_of
from bertcli.tasks.registry import DOCUMENTS, TaskSpec, specs

SYNONYMS = {  # what transformers' pipelines call our options
    "candidate_labels": "candidates", "hypothesis_template": "template", "function_to_apply": "activation",
    "aggregation_strategy": "aggregation", "ignore_labels": "ignore", "max_answer_len": "max_answer_length",
    "handle_impossible_answer": "no_answer", "doc_stride": "stride", "max_seq_len": "max_length",
}  # fmt: skip
NOT_OF_A_REQUEST = ("keep_going", "workers", "batch_tokens", "truncation")


class TextsRequest(TruncatingRequest):
    """Texts, and a task's options by their names in Python or in transformers' pipelines."""

    inputs: str | Listed[str] | dict[str, Any] | Listed[dict[str, Any]] | Listed[Listed[str]] = Field(
        description="A text, or several; {question, context} for answer, {text, text_pair} for a pair."
    )
    parameters: Any = Field(None, description="Options of the task.")
    raw_scores: bool = Field(False, description="The numbers before the softmax or sigmoid.")

    def options(self, use: str) -> dict[str, Any]:
        """The options that the request gives. Errors: Refused, if candidates are missing."""
        parameters: JsonObject | None = self.parameters
        given = {} if parameters is None else parameters.model_dump(exclude_unset=True)
        options = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        if self.raw_scores and use == "classify":
            options.setdefault("activation", "none")
        if use == "zero-shot" and "candidates" not in options:
            raise Refusal(422, "parameters.candidate_labels is missing.", "parameters.candidate_labels", "missing")
        return options


@cache
def request_model(use: str) -> type[TextsRequest]:
    """Make the request class for a use of a model; its parameters are the options of the task."""
    task = spec_of_use(use)
    fields: dict[str, Any] = {}
    for item in declared(task.options):
        if item.name in NOT_OF_A_REQUEST:
            continue
        names = (item.name, *(theirs for theirs, ours in SYNONYMS.items() if ours == item.name))
        described: Any = Field(
            None if item.default is MISSING else item.default, ge=item.metadata["least"],
            description=item.metadata["settings"]["help"], validation_alias=either(*names),
        )  # fmt: skip
        fields[item.name] = (_read_type(item.type) | None, described)
    title = "".join(word.title() for word in use.split("-"))
    parameters = create_model(f"{title}Parameters", __base__=JsonObject, **fields)
    field: Any = parameters | None, Field(None, description="Options of the task.")
    return create_model(f"{title}Request", __base__=TextsRequest, parameters=field)


def _read_type(hint: Any) -> Any:
    """The type of an option as JSON has it: a list for what may be gone through."""
    read = [
        Listed[get_args(kind)[0]] if get_origin(kind) in (Iterable, Sequence) else kind  # type: ignore[misc]
        for kind in kinds_of(hint)
        if kind is not NoneType
    ]
    return Union[tuple(read)]  # noqa: UP007 (of as many as there are)


async def answer_texts(exchange: Exchange, request: TextsRequest) -> Any:
    """The records in the shape of transformers' pipeline: of a single text, what is in the list of several."""
    options = request.options(exchange.use)
    texts = [_text(value, index) for index, value in enumerate(exchange.listed(request.inputs))]
    task = spec_of_use(exchange.use)
    records = await exchange.values(request, task.name, texts, **options)

    def shaped() -> list[Any]:
        return [task.shape(record, options) for record in records]

    answers = await exchange.in_thread(shaped, whether=not exchange.is_short)
    return answers if isinstance(request.inputs, list) else answers[0]


def _text(value: Any, index: int) -> Text:
    """A text, or a pair of texts. Errors: Refused."""
    if isinstance(value, dict):
        value = [value.get("text", value.get("question")), value.get("text_pair", value.get("context"))]
    match value:
        case str():
            return Text(value)
        case [str(), None | str()] | [str()]:
            return Text(*value)
    raise Refusal(422, f"inputs[{index}] is neither a text nor a pair of texts.", "inputs", "wrong_shape")


def has_route(task: TaskSpec) -> bool:
    """True if a task gets a route here; vectors and rankings have routes in the files of several APIs."""
    return not task.vectors and task.reads is not DOCUMENTS


def declare_tasks() -> None:
    """Declare the route of every task, and that of candidates of one's own."""
    summaries = {
        task.name: (task.options.__doc__ or task.name).partition("\n")[0] for task in filter(has_route, specs())
    }
    summaries["zero-shot"] = "How far a text entails each of your labels."
    for use, summary in summaries.items():
        ROUTES.append(Route((f"/{use}",), answer_texts, summary, request_model(use), spec_of_use(use), (use,)))


declare_tasks()
