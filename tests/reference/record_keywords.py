"""Record what `keywords` is compared with: `python tests/reference/record_keywords.py`.

Needs sentence-transformers and keybert (recorded with torch 2.13.0, transformers 5.16.1, sentence-transformers 6.2.0,
scikit-learn 1.9.1, keybert 0.9.0). KeyBERT rounds scores to four decimals: here they are the cosines of the embeddings
that it computes, and its own choice and order. Texts have words that its vectorizer cuts as we do.
"""
# mypy: disable-error-code="import-not-found, import-untyped"

import json
import sys
from pathlib import Path
from typing import Any

import torch
from keybert import KeyBERT
from sentence_transformers import SentenceTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity

HERE = Path(__file__).parent
SAMPLE = HERE.parents[1] / "sample_weights" / "bert-mini-sentence"
TEXTS = [
    "Green tea grows in the hills of Japan and the tea ceremony is an old tradition there",
    "Supervised learning is the machine learning task of learning some function that maps each input to an output "
    "based on example input and output pairs",
    "the river flooded the old town and its bridges after three days of heavy rain in the mountains",
]
PHRASES = ["tea", "green tea", "tea ceremony", "tradition", "hills of japan", "machine learning", "function", "output",
           "river", "old town", "heavy rain", "bridges", "mountains", "coffee"]  # fmt: skip


def scored(model: KeyBERT, text: str, chosen: list[tuple[str, float]], vectorizer: CountVectorizer) -> list[list[Any]]:
    """The chosen words with the cosines of KeyBERT's embeddings, not rounded."""
    of_text, of_words = model.extract_embeddings([text], vectorizer=vectorizer)
    cosines = cosine_similarity(of_text, of_words)[0]
    score_of = dict(zip(vectorizer.get_feature_names_out(), map(float, cosines), strict=True))
    for word, rounded in chosen:
        assert abs(score_of[word] - rounded) < 1e-4
    return [[word, score_of[word]] for word, _ in chosen]


def keywords(path: str) -> dict[str, Any]:
    """Of each text all words, all phrases of up to two words, and those of PHRASES, also chosen to be diverse."""
    model = KeyBERT(SentenceTransformer(path, device="cpu", model_kwargs={"dtype": torch.float32}))
    found: dict[str, Any] = {"words": [], "phrases": [], "given": [], "diverse": {}}
    for text in TEXTS:
        for name, sizes in (("words", (1, 1)), ("phrases", (1, 2))):
            vectorizer = CountVectorizer(ngram_range=sizes)
            chosen = model.extract_keywords(text, vectorizer=vectorizer, top_n=1000)
            found[name].append(scored(model, text, chosen, vectorizer))
        vectorizer = CountVectorizer(ngram_range=(1, 3), vocabulary=PHRASES)
        chosen = model.extract_keywords(text, vectorizer=vectorizer, top_n=1000)
        found["given"].append(scored(model, text, chosen, vectorizer))
    for diversity in (0.0, 0.3, 0.5, 0.8, 1.0):
        found["diverse"][str(diversity)] = []
        for text in TEXTS:
            vectorizer = CountVectorizer(ngram_range=(1, 2))
            chosen = model.extract_keywords(text, vectorizer=vectorizer, top_n=6, use_mmr=True, diversity=diversity)
            found["diverse"][str(diversity)].append(scored(model, text, chosen, vectorizer))
    return found


if __name__ == "__main__":
    path, *file = sys.argv[1:] or [str(SAMPLE)]
    recorded = {"texts": TEXTS, "given": PHRASES, "keywords": keywords(path)}
    target = Path(file[0]) if file else HERE / "keywords.json"
    target.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    print(target)
