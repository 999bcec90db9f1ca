"""Watch a pass: dispatch.py passes every call of an op or a module to a watcher, if one is set.

    dispatch   modules, ops, and the watcher that is set      tracer   a watcher that follows every value
    traced     the values that replace arrays

`onnx/`, `analysis/` and `views/` import this package; it imports none of them, nor networks.
"""
