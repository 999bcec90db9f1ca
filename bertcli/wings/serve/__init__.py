"""`bertcli serve`: models over HTTP, with the routes of OpenAI, Cohere, Ollama and text-embeddings-inference.

run.py          the process: start, signals, end
app.py          the application: key, body, timeout, errors, log; routes are in `api/`, a file for each API
door.py         who may ask: Host, Origin
requests.py     JSON, pydantic models, refusals
exchange.py     one request: what it may cost, its tokens, its place in the stream
stream.py       batches in order of arrival, and the thread that computes them
answers.py      answers as JSON
service.py      models, limits and threads that all requests share
"""
