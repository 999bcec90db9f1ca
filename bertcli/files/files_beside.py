"""Names of the files beside a result, for what its format has no room for: FILE.errors.jsonl, FILE.settings.json."""

ERRORS = "errors.jsonl"  # the texts that could not be used; also the name of this array in segments
SETTINGS_FILE = "settings.json"  # how the result was made
