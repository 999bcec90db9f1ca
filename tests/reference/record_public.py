"""Record the names that are promised to stay (`bertcli guide stability`): python tests/reference/record_public.py

Run it when a name is added. A name that is missing afterwards needs a new major version.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from helpers.public import public_names  # noqa: E402

if __name__ == "__main__":
    (HERE / "public.json").write_text(json.dumps(public_names(), indent=1) + "\n", encoding="utf-8")
