"""Watch a pass: dispatch.py passes every call of an op or a module to a watcher, if one is set.

dispatch   modules, ops, and the watcher that is set; **who sees a call**
traced     the values that replace arrays in a watched pass
tracer     a watcher that follows every value; the trace, the ONNX exporter and others are made of it; **which values
           may enter an op**

`analysis/` and `wings/` import this package; it imports none of them, nor networks.
"""
