"""The routes of `huggingface_hub.InferenceClient`: a model's own task, at the server's root or at /models/NAME.

They compute nothing themselves: the route of the task does.
"""

from typing import Any

from bertcli.errors import quoted
from bertcli.wings.serve.api.tasks import TextsRequest
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.requests import Refusal
from bertcli.wings.serve.routes import paths_for, route, route_at
from bertcli.wings.serve.served_model import Served

# The route that answers each task of `huggingface_hub.InferenceClient`.
ROUTES_OF_TASKS = {
    "feature-extraction": "/embed", "sentence-similarity": "/similarity", "text-classification": "/predict",
    "zero-shot-classification": "/zero-shot", "fill-mask": "/fill-mask", "token-classification": "/tag",
    "question-answering": "/answer", "text-ranking": "/rerank",
}  # fmt: skip
# The client's task for each use of a model, where neither path nor request names one.
TASKS_OF_USES = {
    "encode": "feature-extraction", "classify": "text-classification", "rank": "text-classification",
    "fill-mask": "fill-mask", "tag": "token-classification", "answer": "question-answering",
}  # fmt: skip


@route(
    "/",
    "/models/{model:path}/pipeline/{task}",
    "/pipeline/{task}/{model:path}",
    "/models/{model:path}",
)
async def hub_pipeline(exchange: Exchange, request: TextsRequest) -> Any:
    """The task that the path names, or the one of request and model, in the shape that the Hub's client reads."""
    body = exchange.body
    task = exchange.request.path_params.get("task") or _task_of_request(request)
    if task is None:
        body = {**body, "model": exchange.served.name}
        task = _task_of_model(exchange.served)
    if task not in ROUTES_OF_TASKS:
        why = f"There is no task {quoted(task)}: use one of {', '.join(ROUTES_OF_TASKS)}."
        raise Refusal(404, why, code="not_found")
    if task == "feature-extraction" and isinstance(request.parameters, dict):
        # The options of /embed are fields of the request itself.
        body = {**request.parameters, **body}
    answer = await exchange.answer(route_at(ROUTES_OF_TASKS[task]), body)
    # The client reads a list of texts' labels even for one text, and pairs where the pipeline has two lists.
    if task == "text-classification" and not isinstance(answer[0], list):
        return [answer]
    if task == "zero-shot-classification" and isinstance(answer, dict):
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        return [{"label": label, "score": score} for label, score in pairs]
    return answer


def _task_of_request(request: TextsRequest) -> str | None:
    """The task that a request's fields belong to; None if several tasks have them."""
    if isinstance(request.parameters, dict) and "candidate_labels" in request.parameters:
        return "zero-shot-classification"
    if not isinstance(request.inputs, dict):
        return None
    if "source_sentence" in request.inputs:
        return "sentence-similarity"
    if "question" in request.inputs:
        return "question-answering"
    return None


def _task_of_model(served: Served) -> str:
    """The task of the first use that is one of the client's tasks. Errors: Refusal, if none is."""
    for use in served.uses:
        if use in TASKS_OF_USES:
            return TASKS_OF_USES[use]
    why = f"The model {served.short} has none of the client's tasks. It answers {', '.join(paths_for(served))}."
    raise Refusal(404, why, code="not_found")
