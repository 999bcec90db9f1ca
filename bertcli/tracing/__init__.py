"""What watches a pass: ops and modules are called through one place (dispatch), where a watcher takes the calls.

    dispatch   modules, ops, and the watcher that is set      tracer   a watcher that follows every value
    traced     what stands in the place of an array

`onnx/`, `analysis/` and `views/` stand on this room; it knows nothing of them, nor of networks.
"""
