"""The routes of `huggingface_hub.InferenceClient`: a model's own task, at the server's root or at /models/NAME."""

from typing import Any

from bertcli.errors import quoted
from bertcli.serve.api.tasks import TextsRequest
from bertcli.serve.exchange import Exchange
from bertcli.serve.requests import Refusal
from bertcli.serve.routes import route, route_at

ROUTE_OF = {  # the tasks of `huggingface_hub.InferenceClient`, with the routes that answer them
    "feature-extraction": "/embed", "sentence-similarity": "/similarity", "text-classification": "/predict",
    "zero-shot-classification": "/zero-shot", "fill-mask": "/fill-mask", "token-classification": "/tag",
    "question-answering": "/answer", "text-ranking": "/rerank",
}  # fmt: skip
TASK_OF_USE = {
    "encode": "feature-extraction", "classify": "text-classification", "rank": "text-classification",
    "fill-mask": "fill-mask", "tag": "token-classification", "answer": "question-answering",
}  # fmt: skip


@route("/", "/models/{model:path}/pipeline/{task}", "/pipeline/{task}/{model:path}", "/models/{model:path}")
async def hub_pipeline(exchange: Exchange, request: TextsRequest) -> Any:
    """The task of the path, or else of request and model, as the Hub's client reads it."""
    parameters = request.parameters if isinstance(request.parameters, dict) else {}
    inputs = request.inputs if isinstance(request.inputs, dict) else {}
    told_by_request = {
        "zero-shot-classification": "candidate_labels" in parameters,
        "sentence-similarity": "source_sentence" in inputs,
        "question-answering": "question" in inputs,
    }
    body, task = exchange.body, exchange.request.path_params.get("task")
    task = task or next((name for name, told in told_by_request.items() if told), None)
    if task is None:
        use = next((use for use in exchange.served.uses if use in TASK_OF_USE), "")
        body, task = {**body, "model": exchange.served.name}, TASK_OF_USE.get(use)
    if task not in ROUTE_OF:
        why = f"There is no task {quoted(task)}; those there are: {', '.join(ROUTE_OF)}."
        raise Refusal(404, why, code="not_found")
    if task == "feature-extraction":
        body = {**parameters, **body}
    answer = await exchange.answer(route_at(ROUTE_OF[task]), body)
    if task == "text-classification" and not isinstance(answer[0], list):
        return [answer]
    if task == "zero-shot-classification" and isinstance(answer, dict):
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        return [{"label": label, "score": score} for label, score in pairs]
    return answer
