"""ONNX Runtime, the other engine: a watched pass becomes a graph (`exporter`), a graph becomes a file, a file runs.

open_engine   which engine computes a model      exporter, rules   from ops to nodes: a rule for each op
speeds        how long each engine takes         graph, file       the graph, and how it is written
exactness     how far int8 is from float32       session           run a file; the cache of graphs
"""
