"""Records what torch.save writes, and what torch.load reads from it: `state_dicts.npz`. Needs PyTorch.

Entries `KIND` are the bytes of a file, entries `KIND/NAME` the numbers of its tensors (bfloat16: its bits as uint16).
"""
# mypy: disable-error-code="import-not-found"

import io
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch

NUMBERS = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def state_dicts() -> dict[str, tuple[Any, dict[str, torch.Tensor]]]:
    """Kind → the object that is saved, and its tensors."""
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) / 3)
    plain = {
        "float32": {"a": NUMBERS, "b": -NUMBERS[0]},
        "half": {"a": NUMBERS.half()},
        "bfloat16": {"a": NUMBERS.bfloat16()},
        "float64": {"a": NUMBERS.double()},
        "integers": {str(kind).removeprefix("torch."): torch.arange(5, dtype=kind) for kind in INTEGERS},
        "bool": {"a": NUMBERS > 1},
        "tied": {"a": NUMBERS, "decoder": NUMBERS, "row": NUMBERS[1]},
        "transposed": {"a": NUMBERS.T, "inner": NUMBERS.reshape(3, 2, 2).permute(2, 0, 1)},
        "expanded": {"a": NUMBERS[:, :1].expand(3, 5), "ids": torch.arange(4).expand(1, -1)},
        "sliced": {"a": NUMBERS[1:, ::2], "last": NUMBERS.flatten()[11:]},
        "empty": {"none": torch.zeros(0, 4), "scalar": torch.tensor(2.5)},
        "parameters": {name: torch.nn.Parameter(one) for name, one in (("a", NUMBERS), ("b", NUMBERS[0].clone()))},
    }
    found: dict[str, tuple[Any, dict[str, torch.Tensor]]] = {kind: (one, one) for kind, one in plain.items()}
    found["module"] = (network.state_dict(), network.state_dict())  # with _metadata
    optimizer = {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1e-3, "params": [0]}]}
    tensors = plain["float32"]
    found["training"] = (
        {"epoch": 3, "state_dict": OrderedDict(tensors), "optimizer": optimizer, "best": None},
        tensors,
    )
    found["model"] = ({"model": tensors, "step": 2**40, "done": True}, tensors)
    return found


def swapped(data: bytes) -> bytes:
    """A zip as a machine of big-endian numbers writes it."""
    source, target = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as written:
        for name in source.namelist():
            member = source.read(name)
            if "/data/" in name:
                member = np.frombuffer(member, ">f4").astype("<f4").tobytes()
            written.writestr(name, b"big" if name.endswith("byteorder") else member)
    return target.getvalue()


def numbers(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    tensor = tensor.detach().contiguous()
    found: np.ndarray[Any, Any] = (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return found.view(np.uint16) if tensor.dtype == torch.bfloat16 else found


def main() -> None:
    recorded: dict[str, np.ndarray[Any, Any]] = {}

    def record(kind: str, data: bytes, tensors: dict[str, torch.Tensor]) -> None:
        loaded = torch.load(io.BytesIO(data), weights_only=False)  # made above; the safe way knows no protocol 4
        loaded = loaded.get("state_dict", loaded.get("model", loaded))
        assert loaded.keys() == tensors.keys()
        recorded[kind] = np.frombuffer(data, np.uint8)
        for name, tensor in loaded.items():
            assert torch.equal(tensor, tensors[name])
            recorded[f"{kind}/{name}"] = numbers(tensor)

    for kind, (saved, tensors) in state_dicts().items():
        for zipped, protocol in ((True, 2), (False, 2), (True, 4), (False, 5)):
            if protocol > 2 and kind not in ("module", "training"):
                continue
            file = io.BytesIO()
            torch.save(saved, file, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
            record(f"{kind}-{'zip' if zipped else 'stream'}-{protocol}", file.getvalue(), tensors)
    file = io.BytesIO()
    tensors = state_dicts()["transposed"][1]
    torch.save(tensors, file)
    record("big-endian-zip-2", swapped(file.getvalue()), tensors)
    np.savez_compressed(Path(__file__).parent / "state_dicts.npz", allow_pickle=False, **recorded)


if __name__ == "__main__":
    main()
