"""ONNX Runtime, the other engine: a watched pass becomes a graph (`exporter`), a graph becomes a file, a file runs.

engine            the object that computes a model's hidden states, and how exact its int8 is
open_engine       a session for a network; pass_times: how long a pass takes
exactness         how far int8 is from float32, and which layers stay in float32
exporter, rules   from a pass to a graph: a rule for each op
graph, file       the graph, and how it is written
session           run a file; the cache of graphs
"""
