"""Record what GLiNER2's library makes of small models of GLiNER2 and 2.5, in gliner2.json and gliner25.json.

`python tests/reference/record_gliner2.py` with torch and gliner2 (recorded with gliner2 2.1.0, torch 2.13 and
transformers 5.16.1), and HF_HUB_OFFLINE=1.
"""
# mypy: disable-error-code="import-not-found"

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

import torch  # noqa: E402
from gliner2 import AutoExtractor, GLiNER2  # noqa: E402
from helpers import gliner2, gliner25  # noqa: E402
from helpers.gliner2 import (  # noqa: E402
    CANDIDATES,
    DESCRIBED,
    DESCRIBED_CANDIDATES,
    LABELS,
    LONG,
    TASK,
    TEXTS,
)
from helpers.json_files import write_json  # noqa: E402

torch.set_num_threads(1)


def record(opened: Any, version: Any, write: Callable[..., Path], unused: tuple[str, ...]) -> dict[str, Any]:
    """Of each case the number of parameters, and of each text the entities and the scores of candidates.

    opened: the library's class. version: the module of the models. unused: names of parameters that bertcli does not
    run.
    """
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in version.CASES.items():
            model = opened.from_pretrained(str(write(Path(folder) / name, **options)))
            model.eval()
            counts = {of: parameter.numel() for of, parameter in model.named_parameters()}
            used = sum(count for of, count in counts.items() if not of.startswith(unused))
            found[name] = {
                "parameters": sum(counts.values()),
                **({"used": used} if unused else {}),
                **{mode: entities(model, TEXTS, LABELS, *how) for mode, how in version.MODES.items()},
                "described": entities(model, TEXTS, DESCRIBED, 0.5, None),
                "softmax": scores(model, TEXTS, CANDIDATES, multi_label=False),
                "sigmoid": scores(model, TEXTS, DESCRIBED_CANDIDATES, multi_label=True),
            }
            if name.startswith("deberta"):
                long = entities(model, [LONG], LABELS, 0.9, None)
                found[name]["long"] = [long, scores(model, [LONG], CANDIDATES, multi_label=False)]
    return found


def named(labels: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The names of labels, and the descriptions of those that have one."""
    parts = [label.partition(": ") for label in labels]
    return [name for name, *_ in parts], {name: text for name, _, text in parts if text}


def entities(model: Any, texts: Sequence[str], labels: Sequence[str], threshold: float, policy: str | None) -> Any:
    """Of each text [start, end, label, score] of its entities, of all texts together."""
    names, described = named(labels)
    types = {name: {"description": described[name]} if name in described else {} for name in names}
    given = {"threshold": threshold, "overlap_policy": policy, "include_confidence": True, "include_spans": True}
    results = model.batch_extract_entities([*texts], types, **given)
    return [
        sorted(
            [one["start"], one["end"], label, round(one["confidence"], 7)]
            for label, of_label in result["entities"].items()
            for one in of_label
        )
        for result in results
    ]


def scores(model: Any, texts: Sequence[str], labels: Sequence[str], *, multi_label: bool) -> list[list[float]]:
    """Of each text the score of each candidate, of all texts together."""
    found: list[list[float]] = []
    decode = model._decode_classification_probabilities

    def noted(results: Any, name: str, config: Any, probabilities: Any) -> None:
        found.append([round(score, 7) for score in probabilities.tolist()])
        decode(results, name, config, probabilities)

    model._decode_classification_probabilities = noted
    names, described = named(labels)
    asked = {"labels": names, "multi_label": multi_label, "label_descriptions": described}
    model.batch_classify_text([*texts], {TASK: asked})
    del model._decode_classification_probabilities
    return found


if __name__ == "__main__":
    of_each = {
        "gliner2.json": record(GLiNER2, gliner2, gliner2.write_gliner2, ()),
        "gliner25.json": record(AutoExtractor, gliner25, gliner25.write_gliner25, gliner25.UNUSED),
    }
    for file, recorded in of_each.items():
        write_json(HERE / file, recorded)
