"""Record what sentence-transformers makes of texts with static models and with other families, in sentence_models.json.

`python tests/reference/record_sentence_models.py` with torch, transformers and sentence-transformers (recorded with
transformers 5.24.0, sentence-transformers 6.2.0, peft 0.21.2).
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from helpers.json_files import read_json  # noqa: E402
from helpers.sentence_folders import (  # noqa: E402
    FOLDERS,
    GEMMA_PROMPTS,
    JINA_PROMPTS,
    JINA_TASKS,
    QWEN_PROMPTS,
    write_folder,
    write_gemma,
    write_jina,
    write_qwen_folder,
    write_t5,
)
from helpers.static_models import LAYOUTS, write_static  # noqa: E402
from peft import PeftModel  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

torch.set_num_threads(1)
TEXTS = ["The hot tea", "", "unbelievable xqz!", "[MASK] [CLS] tea"]
LONG = ["The hot tea was good", "unbelievable coffee in Paris! " * 8]


def vectors(folder: str, texts: list[str], prompt_name: str | None = None) -> list[list[float]]:
    model = SentenceTransformer(folder, device="cpu").float()  # in half precision an empty text is NaN
    return [[round(number, 7) for number in vector] for vector in model.encode(texts, prompt_name=prompt_name).tolist()]


def gemma() -> dict[str, list[list[float]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(write_gemma(Path(folder)))
        return {name: vectors(path, [*TEXTS, *LONG], name or None) for name in ("", *GEMMA_PROMPTS)}


def qwen() -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {}
    for pooling in ("lasttoken", "weightedmean"):
        with tempfile.TemporaryDirectory() as folder:
            path = str(write_qwen_folder(Path(folder), pooling))
            names = ("", *QWEN_PROMPTS) if pooling == "lasttoken" else ("",)
            found |= {f"{pooling}/{name}": vectors(path, [*TEXTS, *LONG], name or None) for name in names}
    return found


def qwen2() -> dict[str, list[list[float]]]:
    """gte-Qwen2: to both sides, the last token."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(write_qwen_folder(Path(folder), family="qwen2", is_causal=False))
        return {name: vectors(path, [*TEXTS, *LONG], name or None) for name in ("", *QWEN_PROMPTS)}


def t5() -> dict[str, list[list[float]]]:
    found = {}
    for family in ("t5", "mt5", "umt5"):
        with tempfile.TemporaryDirectory() as folder:
            found[family] = vectors(str(write_t5(Path(folder), family)), [*TEXTS, *LONG])
    return found


def jina() -> dict[str, list[list[float]]]:
    """What its published code does, without it: the base of transformers, an adapter of peft, the last token."""
    found = {}
    bases = {
        "qwen3": (transformers.Qwen3Config, transformers.Qwen3Model),
        "eurobert": (transformers.EuroBertConfig, transformers.EuroBertModel),
    }
    for family, (config_class, model_class) in bases.items():
        with tempfile.TemporaryDirectory() as folder:
            path = write_jina(Path(folder), family)
            own = ("model_type", "architectures", "task_names", "auto_map")
            raw = read_json(path / "config.json")
            config = config_class(**{key: value for key, value in raw.items() if key not in own})
            backend = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
            backend.enable_truncation(config.max_position_embeddings)
            for task in JINA_TASKS:
                base = model_class.from_pretrained(path, config=config, dtype=torch.float32)
                model = PeftModel.from_pretrained(base, path / "adapters" / task).eval()
                for name, prompt in JINA_PROMPTS.items():
                    ids = [torch.tensor([backend.encode(prompt + text).ids]) for text in [*TEXTS, *LONG]]
                    with torch.no_grad():
                        last = [model(input_ids=one).last_hidden_state[0, -1] for one in ids]
                    units = [torch.nn.functional.normalize(one, dim=0).tolist() for one in last]
                    found[f"{family}/{task}/{name}"] = [[round(number, 7) for number in one] for one in units]
    return found


def record() -> dict[str, dict[str, list[list[float]]]]:
    static, families = {}, {}
    for name in (*LAYOUTS, *FOLDERS):
        with tempfile.TemporaryDirectory() as folder:
            if name in FOLDERS:
                families[name] = vectors(str(write_folder(Path(folder), name)), LONG)
            else:
                write_static(Path(folder), name)
                static[name] = vectors(folder, TEXTS)
    return {"static": static, "families": families, "gemma": gemma(), "qwen": qwen(), "qwen2": qwen2(), "t5": t5(),
            "jina": jina()}  # fmt: skip


if __name__ == "__main__":
    text = json.dumps({"texts": TEXTS, "long": LONG, **record()}, separators=(",", ":"))
    (HERE / "sentence_models.json").write_text(text + "\n", encoding="utf-8")
