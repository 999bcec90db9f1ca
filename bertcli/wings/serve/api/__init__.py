"""The routes, a file for each API. `routes.all_routes` finds the files; a new one needs to be named nowhere.

about    the routes about the server: /health, /metrics, and the pages for people, such as /pass
cohere   Cohere's embeddings (version 2) and rerank; Jina's rerank has the same route and fields
hub      the routes of `huggingface_hub.InferenceClient`: a model's own task, at the server's root or at /models/NAME;
         **which task a model answers at the root**
ollama   Ollama's embeddings; its other routes do not exist here
openai   OpenAI's embeddings and its list of models
openapi  the route /openapi.json: OpenAPI 3.1, generated from the routes, their pydantic models and the tasks' records
tasks    a route for each task, made from its spec in `bertcli/tasks`: POST /fill-mask, /tag, /answer …; **which options
         a route takes, and what it answers**
tei      the routes of text-embeddings-inference (TEI): vectors, rankings, labels, tokens, /info
"""
