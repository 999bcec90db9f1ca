"""ONNX Runtime, the other engine: a watched pass becomes a graph (`exporter`), a graph becomes a file, a file runs."""
