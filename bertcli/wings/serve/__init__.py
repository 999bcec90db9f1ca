"""`bertcli serve`: models over HTTP, with the routes of OpenAI, Cohere, Ollama and text-embeddings-inference.

run                   the process: start, signals, end
connections           how many connections, and how long each may send or read nothing
app                   the application: key, body, timeout, errors, log
host_and_origin       who may ask: the headers Host and Origin
routes                the table of routes; their functions are in `api/`, a file for each API
requests              JSON, pydantic models, refusals
exchange              one request: its tokens, its place in the stream
stream                batches in order of arrival, and the thread that computes them
embedding             fields and answers of the routes for vectors
ranking               fields and scores of the routes for rankings
answers               answers as JSON
command               the command: its options
service               models, limits, queue and threads that all requests share
served_model          a model, the name that clients see, and its tasks by their options
metrics               counts and times for Prometheus
page.html, .css, .js  the page on which people try the models
examples              examples of `bertcli serve` for `bertcli info`
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
            other_words=("server", "api"),
        ),
    ),
    examples="bertcli.wings.serve.examples",
    topics=(Topic(Path(__file__).parent / "guide" / "serve.md", 5, ("server", "http")),),
    extra="serve",
)
