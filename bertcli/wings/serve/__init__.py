"""`bertcli serve`: models over HTTP, with the routes of OpenAI, Cohere, Ollama and text-embeddings-inference.

run.py               the process: start, signals, end
connections.py       how many connections, and how long each may send or read nothing
app.py               the application: key, body, timeout, errors, log
host_and_origin.py   who may ask: the headers Host and Origin
routes.py            the table of routes; their functions are in `api/`, a file for each API
requests.py          JSON, pydantic models, refusals
exchange.py          one request: what it may cost, its tokens, its place in the stream
stream.py            batches in order of arrival, and the thread that computes them
embedding.py         fields and answers of the routes for vectors
ranking.py           fields and scores of the routes for rankings
answers.py           answers as JSON
command.py           the command: its options
service.py           models, limits, queue and threads that all requests share
served_model.py      a model, the name that clients see, and its tasks by their options
metrics.py           counts and times for Prometheus
page.html, .css, .js the page on which people try the models
examples  examples of `bertcli serve` for `bertcli info`
"""

from pathlib import Path

from bertcli.extensions import Command, Extension, Topic

WING = Extension(
    "serve",
    commands=(
        Command(
            "serve",
            "Evaluate and deploy",
            "Serve models over HTTP: embeddings, rerank, classify, fill-mask, tag, answer.",
            module="bertcli.wings.serve.command",
            position=2,
            most_used=("-m", "--host", "--port", "--api-key", "--cors", "--truncation", "--quiet"),
            brief={
                "--truncation": "A text that is too long: auto cuts, error refuses",
            },
            other_words=("server", "api"),
        ),
    ),
    examples="bertcli.wings.serve.examples",
    topics=(Topic(Path(__file__).parent / "guide" / "serve.md", 5, ("server", "http")),),
    extra="serve",
)
