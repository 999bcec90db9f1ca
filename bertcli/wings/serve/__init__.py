"""`bertcli serve`: models over HTTP, with the routes of OpenAI, Cohere, Ollama and text-embeddings-inference.

run                   the process: start, signals, end
connections           how many connections, and how long each may send or read nothing; **when one is closed**
app                   the application: key, body, timeout, errors, log; **with which status an error is answered**
host_and_origin       who may ask: the headers Host and Origin; **which names it has**
routes                the table of routes; their functions are in `api/`, a file for each API
requests              JSON, pydantic models; **which refusal a request of a wrong form gets**
exchange              one request: its tokens, its place in the stream; **that there is an input, and how many;
                      when the server is too busy**
stream                batches in order of arrival, and the thread that computes them; **which requests are computed
                      together**
embedding             fields and answers of the routes for vectors
ranking               fields and scores of the routes for rankings
answers               answers as JSON
command               the command: its options; **which engine serves**
service               models, limits, queue and threads that all requests share; **which bounds a server has**
served_model          a model, the name that clients see, and its tasks by their options; **how many tasks are kept**
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
