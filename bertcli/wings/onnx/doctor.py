"""What ONNX Runtime adds to `bertcli doctor`: its version, devices and cache."""

from typing import Any

from bertcli.wings.onnx.session import available_devices, cache_folder, cache_size, installed, runtime


def examine() -> dict[str, Any]:
    """The part of the record of `bertcli doctor` about ONNX Runtime: version, devices, the folder of cached graphs."""
    if not (installed("onnxruntime") and installed("onnx")):
        return {"onnxruntime": "not installed: pip install 'bertcli[onnx]'"}
    return {
        "onnxruntime": runtime().__version__,
        "onnx_devices": available_devices(),
        "onnx_graphs": str(cache_folder()),
        "onnx_graphs_mb": round(cache_size() / 1e6, 1),
    }
