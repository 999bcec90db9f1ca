"""Record what transformers makes of each family's checkpoints, in an environment with torch and transformers:
`python tests/reference/record_families.py [family …]` (recorded with transformers 5.23.0, torch 2.13.0).
JinaBERT and MosaicBERT, which transformers lacks, are those of alibi_oracle.py; with `--published FOLDER` their
encoders are the published code, which is not kept here. The recorded numbers of these come from that. NomicBERT with
experts is that of nomic_oracle.py.

One file a family, `families/NAME.npz`. Eager attention, float32, one thread.
"""

# mypy: disable-error-code="import-not-found"

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from helpers.family_checkpoints import FAMILIES, architecture, make_family  # noqa: E402
from reference import alibi_oracle, nomic_oracle  # noqa: E402
from reference.family_cases import CASES, COLUMNS, Case, recorded_rows  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)


def load(folder: Path, case: Case) -> Any:
    """The transformers model; a tensor that is missing, unknown or of another shape is an error."""
    if case.family == "jina_bert":
        return alibi_oracle.load(folder, case.head, case.checkpoint.get("old", "jina"))
    if case.checkpoint.get("old") == "experts":
        return nomic_oracle.load(folder)
    kind = getattr(transformers, architecture(case.family, case.head))
    model, report = kind.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    found = {key: names for key, names in report.items() if names}
    if found:
        raise ValueError(f"{case}: {found}")
    return model.eval()


def outputs(model: Any, case: Case) -> dict[str, Any]:
    """The rows worth recording of every hidden state and of the head's logits."""
    batch = case.batch()
    counted, rows = batch.mask.astype(bool), recorded_rows(batch)
    given = {"input_ids": batch.ids, "attention_mask": batch.mask}
    given |= {"token_type_ids": batch.segments} if case.segments else {}
    arguments = {name: torch.from_numpy(values) for name, values in given.items()}
    if case.head == "multiple_choice":
        arguments = {name: values[:, None] for name, values in arguments.items()}
    with torch.inference_mode():
        found = model(**arguments, output_hidden_states=True)
    found_states = [state.numpy()[counted][rows] for state in found.hidden_states]
    result = {"states": np.stack(found_states)}
    if case.head == "qa":
        result["qa"] = np.stack([found.start_logits.numpy(), found.end_logits.numpy()], axis=-1)[counted][rows]
    elif case.head in ("token_classifier", "rtd"):
        result[case.head] = found.logits.numpy()[counted].reshape(counted.sum(), -1)[rows]
    elif case.head == "sop":
        result["sop"], result["mlm"] = found.sop_logits.numpy(), found.prediction_logits.numpy()[counted][rows, COLUMNS]
    elif case.head in ("mlm", "lm"):
        result[case.head] = found.logits.numpy()[counted][rows, COLUMNS]
    elif case.head != "model":
        result[case.head] = found.logits.numpy().reshape(len(counted), -1)
    elif getattr(found, "pooler_output", None) is not None:
        result["pooler"] = found.pooler_output.numpy()
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=[])
    parser.add_argument("--published", type=Path)
    asked = parser.parse_args()
    alibi_oracle.PUBLISHED = asked.published
    (HERE / "families").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for family in asked.families or FAMILIES:
            arrays: dict[str, Any] = {}
            for name, case in CASES.items():
                if case.family == family:
                    model = load(make_family(Path(folder) / name, family, case.head, **case.checkpoint), case)
                    arrays |= {f"{name}/{part}": value for part, value in outputs(model, case).items()}
            file = HERE / "families" / f"{family}.npz"
            np.savez_compressed(file, **arrays)
            print(f"{file.name}: {len(arrays)} arrays, {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
