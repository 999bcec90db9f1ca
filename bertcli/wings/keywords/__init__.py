"""Keywords: the words of a text that its vector is nearest to.

keywords     the task: its options, record and table
work         its computation, beside the vectors of `encode`; **which words are candidates**
stop_words   English stop words; when texts seem not to be English
"""

from pathlib import Path

from bertcli.extensions import Extension, Topic

WING = Extension(
    "keywords",
    tasks={"bertcli.wings.keywords.keywords": "bertcli.wings.keywords.work"},
    topics=(Topic(Path(__file__).parent / "guide" / "keywords.md", 3, ("keyphrases",)),),
)
