"""The layout of the package: imports point one way without circles, and each heavy package is imported in one place."""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from helpers.options_of_commands import options_of

import bertcli
from bertcli.extensions import wings
from bertcli.names import NAMES

HOME = Path(bertcli.__file__).parent
FILES = sorted(HOME.rglob("*.py"))
ROOT = HOME.parent

# From the ground up; a file may import from its own folder and from those before it, never from those after it.
ORDER = [
    *(
        "_version",
        "names",
        "errors",
        "extensions",
        "platforms",
        "ranking",
        "statistics",
        "report",
        "tracing",
        "engine",
        "network",
        "functional",
        "models",
        "folder",
        "weights",
        "tokens",
        "kinds",
    ),
    *("variants", "engines", "loaded_model", "files", "doctor", "tasks", "capabilities", "model"),
    *("analysis", "cli", "wings"),
]
ALONE: dict[str, set[str]] = {
    "rich": {"report"},
    "tokenizers": {"tokens"},
    "filelock": {"files"},
    "huggingface_hub": {"folder"},
    "safetensors": {"weights"},
    "typer": {"cli"},
    "mcp": {"wings.agents"},
    "jsonschema": {"wings.agents"},
    "onnx": {"wings.onnx"},
    "onnxruntime": {"wings.onnx"},
    "orjson": {"wings.serve"},
    "pydantic": {"wings.agents", "wings.serve"},
    "starlette": {"wings.serve"},
    "uvicorn": {"wings.serve"},
}


def name_of(path: Path) -> str:
    """The module's dotted name below the package: "engine.blas"; "engine" for its __init__.py."""
    parts = path.relative_to(HOME).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(path: Path) -> str:
    """The room that a file is in: the folder "engine", the file "variants", the wing "wings.serve"."""
    parts = name_of(path).split(".")
    return ".".join(parts[:2]) if parts[0] == "wings" else parts[0]


MODULES = {name_of(path) for path in FILES}


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree, gone through once: they are half a million."""
    return list(ast.walk(parsed(path)))


@cache
def tokens(path: Path) -> list[tokenize.TokenInfo]:
    """A file's comments and names."""
    lines = io.StringIO(path.read_text(encoding="utf-8")).readline
    return [token for token in tokenize.generate_tokens(lines) if token.type in (tokenize.COMMENT, tokenize.NAME)]


@cache
def imports(path: Path) -> frozenset[str]:
    """What a file imports, wherever in the file, for type checkers too: modules of ours, or packages."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


@cache
def ours(path: Path) -> set[str]:
    """The modules of this package that a file imports."""
    names = {name.removeprefix("bertcli.") for name in imports(path) if name.startswith("bertcli.")}
    return names & MODULES - {name_of(path)}


def test_imports_point_one_way() -> None:
    for path in FILES:
        here = name_of(path).split(".")[0]
        if here in ("", "__main__"):
            continue
        assert here in ORDER, f"{path.name} has no place in the order"
        above = set(ORDER[ORDER.index(here) + 1 :])
        up = {name for name in ours(path) if name.split(".")[0] in above}
        assert not up, f"{path} imports {up}"


def test_the_list_of_rooms_has_their_order() -> None:
    table = (ROOT / ".github/ARCHITECTURE.md").read_text(encoding="utf-8").partition("## The rooms")[2]
    rows = re.findall(r"^\| `([a-z_]+)(?:/|\.py)`", table.partition("## The wings")[0], re.MULTILINE)
    assert [name for name in rows if name in ORDER] == [name for name in reversed(ORDER) if name in rows]
    assert {*ORDER} - {*rows} == {"wings", "platforms", "_version"}


def test_imports_have_no_circles() -> None:
    TopologicalSorter({name_of(path): ours(path) for path in FILES if name_of(path)}).prepare()


def test_nothing_that_the_package_is_made_of_imports_its_face() -> None:
    """`import bertcli`, and names of it that are no modules: only commands and wings, which stand on it, may."""
    faces = {f"bertcli.{name}" for name in NAMES if name not in MODULES} | {"bertcli"}
    for path in FILES:
        if name_of(path).split(".")[0] in ("", "__main__", "cli", "wings"):
            continue
        bare = {alias.name for node in nodes(path) if isinstance(node, ast.Import) for alias in node.names}
        named = {name for name in imports(path) if name != "bertcli"}
        assert not faces & (bare | named), f"{path} imports the package's face"


def test_the_names_of_the_package_are_written_once() -> None:
    assert sorted(bertcli.__all__) == sorted(NAMES)


@pytest.mark.parametrize("package", sorted(ALONE))
def test_one_place_imports_each_package(package: str) -> None:
    users = {room_of(path) for path in FILES if any(n.split(".")[0] == package for n in imports(path))}
    assert users == ALONE[package]


def test_every_package_that_is_imported_is_declared() -> None:
    """In pyproject.toml: for all, for the wing that imports it, or for the room that reads Parquet."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = pyproject["optional-dependencies"]
    extra_of: dict[str, str | None] = {f"wings.{wing.name}": wing.extra for wing in wings()}
    extra_of |= {"files": "parquet", "report": "figures"}
    for path in FILES:
        declared = {*pyproject["dependencies"], *extras.get(extra_of.get(room_of(path)) or "", ())}
        missing = packages_of(path) - {*map(module_of, declared)}
        assert not missing, f"{path.relative_to(HOME)} imports {missing}, which pyproject.toml does not declare for it"


def packages_of(path: Path) -> set[str]:
    """The packages of others that a file imports, also by a call with their name."""
    named = {*imports(path)}
    for node in nodes(path):
        called = node.func if isinstance(node, ast.Call) else None
        if getattr(called, "id", getattr(called, "attr", "")) == "import_module":
            (name, *_) = node.args  # type: ignore[attr-defined]
            named |= {str(name.value)} if isinstance(name, ast.Constant) else set()
    return {name.split(".")[0] for name in named} - sys.stdlib_module_names - {"bertcli", ""}


def module_of(requirement: str) -> str:
    """The module of a requirement such as "mcp-types>=2.3"."""
    return re.split(r"[\[<>=!~; ]", requirement)[0].replace("-", "_").lower()


PAGES = [name for name in MODULES if name.startswith(("network.", "models."))]


@pytest.mark.parametrize("page", sorted({*PAGES} - {"network.ops", "network.position_ops"}))
def test_the_pages_people_read_know_no_numpy(page: str) -> None:
    assert not any(name.split(".")[0] == "numpy" for name in imports(HOME / f"{page.replace('.', '/')}.py"))


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_forward_says_its_shapes(page: str) -> None:
    tree = parsed(HOME / f"{page.replace('.', '/')}.py")
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    forwards = [
        one for node in classes for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "forward"
    ]
    assert all("[" in (ast.get_docstring(one) or "") for one in forwards)


def test_a_family_is_imported_without_readers_of_files() -> None:
    code = "import sys, bertcli.models.bert; print(*(name for name in sys.modules if name.startswith('bertcli.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    folders = {name.split(".")[1] for name in loaded}
    assert folders == {"names", "errors", "platforms", "tracing", "engine", "network", "models"}
    assert len(loaded) <= 23


def test_nothing_but_its_file_imports_a_family() -> None:
    families = {name for name in MODULES if name.startswith("models.")} - {
        "models.config",
        "models.registry",
        "models.tensor_names",
    }
    for path in FILES:
        allowed = {"": {"models.bert"}}.get(name_of(path), set())
        assert path.parent.name == "models" or ours(path) & families <= allowed, path


def test_no_two_files_of_tests_have_the_same_name() -> None:
    """pytest knows files by their names alone, and would collect neither."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert {name for name, count in names.items() if count > 1} == set()


def test_no_room_hides_its_idea_in_its_door() -> None:
    for path in FILES:
        if path.name != "__init__.py" or path.parent.parent == HOME / "wings":  # a wing's declaration is there
            continue
        first, *statements = parsed(path).body
        lines = statements[-1].end_lineno - first.end_lineno if statements else 0  # type: ignore[operator]
        assert lines <= 60, path


def test_no_class_name_means_two_things() -> None:
    """A reader who searches for a class finds one; families give their modules the names that BERT's have."""
    rooms = [path for path in FILES if path.parent.name not in ("models", "network")]
    names = Counter(node.name for path in rooms for node in nodes(path) if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1} == set()


# ------------------------------------------------------------------------------------------------- names in the prose

A_FILE = re.compile(r"[\w./-]*\w\.(?:py|js|css|md)\b")
A_FOLDER = re.compile(r"(?<![\w/.-])[a-z_]+/(?=[\s,.;:)]|$)")
A_NAME = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`", re.ASCII)
OTHERS = {
    "transformers.js",
    "beir/",  # a user's data
    "redacted/",  # likewise
    "refs/",  # in the Hub's cache
    "ROPE_INIT_FUNCTIONS",  # of transformers
    "InferenceClient",  # of the Hub's client
    "King",  # a word of a vocabulary
    "_coercion",  # of Typer
}


def prose(path: Path) -> Iterator[str]:
    """The comments and docstrings of a file."""
    for token in tokens(path):
        if token.type == tokenize.COMMENT:
            yield token.string
    yield from docstrings(path)


def docstrings(path: Path) -> list[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [ast.get_docstring(node, clean=False) or "" for node in nodes(path) if isinstance(node, documented)]


@cache
def stored_paths() -> list[str]:
    """Paths of all files and folders that belong to the project, each with a slash before it."""
    folders = (HOME, ROOT / "tests", ROOT / ".github", ROOT / "sample_weights")
    files = [path for folder in folders for path in folder.rglob("*")]
    return [f"/{path.relative_to(ROOT).as_posix()}" for path in [*ROOT.glob("*.*"), *folders, *files]]


@cache
def names_in_code() -> set[str]:
    """Every word of the package's code, those of its strings too, but not those of its docstrings."""
    found: set[str] = set()
    for path in FILES:
        documented = set(docstrings(path))
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in documented:
                found.update(re.findall(r"\w+", node.value))
        found.update(token.string for token in tokens(path) if token.type == tokenize.NAME)
    for path in HOME.rglob("*.js"):
        found.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return found


def test_files_and_names_in_the_prose_exist() -> None:
    missing = []
    known = names_in_code() | OTHERS
    texts = [(path, text) for path in FILES for text in prose(path)]
    for path in [ROOT / ".github/ARCHITECTURE.md", *(ROOT / ".github/decisions").glob("*.md")]:
        texts.append((path, path.read_text(encoding="utf-8")))
    contributing = ROOT / ".github/CONTRIBUTING.md"
    _, _, second_places = contributing.read_text(encoding="utf-8").partition("### Second places")
    texts.append((contributing, second_places.partition("###")[0]))
    for path, text in texts:
        for name in {*A_FILE.findall(text), *A_FOLDER.findall(text)} - OTHERS:
            if not any(stored.endswith(f"/{name.strip('/')}") for stored in stored_paths()):
                missing.append(f"{path}: {name}")
        for name in A_NAME.findall(text):
            if not {*name.split(".")} <= known:
                missing.append(f"{path}: {name}")
    assert not missing, "\n".join(missing)


def test_what_decides_is_in_the_file_that_the_table_names() -> None:
    """ARCHITECTURE says "`NAME` in `FILE`" where a function or a field decides."""
    table = (ROOT / ".github/ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Where is it decided")[2]
    decided = re.findall(r"`(\w+)` (?:in|of) `([\w/]+\.py)`", table)
    assert len(decided) > 8
    for name, file in decided:
        defined = {getattr(node, "name", "") for node in nodes(HOME / file)}
        assert name in defined, f"{file} does not define {name}"


def test_every_variable_of_the_environment_is_in_the_guide() -> None:
    named = {name for path in FILES for name in re.findall(r"\bBERTCLI_[A-Z_]+", path.read_text(encoding="utf-8"))}
    guide = "".join(path.read_text(encoding="utf-8") for path in HOME.rglob("guide/*.md"))
    assert named >= {"BERTCLI_MODEL", "BERTCLI_CACHE"}
    assert {name for name in named if name not in guide} == set()


def test_every_option_that_a_message_names_exists() -> None:
    known = {spelling for options in options_of().values() for spelling in options}
    missing = []
    for path in FILES:
        messages = [node for node in nodes(path) if isinstance(node, ast.Raise) or is_logged(node)]
        for message in messages:
            for node in ast.walk(message):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    named = re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", node.value)
                    missing += [f"{path}, line {node.lineno}: {name}" for name in named if name not in known]
    assert not missing, "\n".join(missing)


def test_nobody_else_names_the_models_that_a_wing_brings() -> None:
    """What a command has to know of them, their kind says."""
    bringing = [wing.name for wing in wings() if wing.kind_folders]
    assert bringing == ["gliner"]
    for name in bringing:
        others = [path for path in FILES if not room_of(path).startswith(f"wings.{name}")]
        assert not [str(path) for path in others if name in path.read_text(encoding="utf-8").lower()]


def test_no_word_of_the_core_is_a_command_of_a_wing() -> None:
    """What the core has to know of a command it is told in declarations. "heads" is a field of every model, too."""
    commands = {command.name for wing in wings() for command in wing.commands} - {"heads"}
    commands |= {module.rpartition(".")[2] for wing in wings() for module in wing.tasks}
    assert len(commands) > 8
    named = []
    for path in FILES:
        if room_of(path).partition(".")[0] == "wings":
            continue
        for node in nodes(path):
            if isinstance(node, ast.Constant) and node.value in commands:
                named.append(f"{path}, line {node.lineno}: {node.value}")
    assert not named, "\n".join(named)


# Tests in which a command is given an option that it does not have, because its answer is what they are about.
REFUSED = {
    "test_gliner.py": {"--labels"},
    "test_arguments.py": {"--layers", "--text"},
    "test_help.py": {
        "--head",
        *("--batch-size", "--estimate", "--col", "-k", "--context", "-r", "-q", "--labels", "--target", "--explain"),
        *("--json", "--html", "--hidden-size", "--workers", "--device", "--graph", "--classifier"),
        *("--queries", "--vectors", "--versus", "-i", "--max-length", "--max-answer-length", "--pooling"),
        *("--truncate-dim", "--format"),
    },
    "test_pass_times.py": {"-m"},
    "test_patch.py": {"-i"},
    "test_process.py": {"--nope"},
    "test_tag_command.py": {"--text-pair"},
}


def test_every_option_that_a_test_gives_a_command_exists() -> None:
    """A test of something else would only see that the option is refused, which is status 2 as well."""
    known = options_of()
    unknown: list[str] = []
    unused = {(name, option) for name, options in REFUSED.items() for option in options}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(parsed(path)):
            for option, command, line in options_given(node):
                unused.discard((path.name, option))
                if option not in known[command] and option not in REFUSED.get(path.name, ()):
                    unknown.append(f"{path}, line {line}: {command} {option}")
    assert not unknown, "\n".join(unknown)
    assert not unused, f"no test gives {unused} any more"


def options_given(node: ast.AST) -> Iterator[tuple[str, str, int]]:
    """The options in a call, a list, a tuple or a line that begins with a command's name, with that and their line."""
    if isinstance(node, ast.Call):
        words = [text_of(word) for word in node.args]
    elif isinstance(node, ast.List | ast.Tuple):
        words = [text_of(word) for word in node.elts]
    else:
        words = text_of(node).split()
    command, *others = words or [""]
    if command not in options_of():
        return
    for word in others:
        if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word) and word != "--help":
            yield word.partition("=")[0], command, node.lineno  # type: ignore[attr-defined]


def text_of(node: ast.AST) -> str:
    """The text that stands in a program; "" for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def is_logged(node: ast.AST) -> bool:
    """True for a call such as logger.info(…)."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "logger"


def test_every_folder_has_a_map() -> None:
    """The docstring of a folder names each of its files; in models/ a file is a family, and the registry lists them."""
    for init in HOME.rglob("__init__.py"):
        folder = init.parent
        if folder in (HOME, HOME / "wings", HOME / "models"):
            continue
        words = set(re.findall(r"\w+", ast.get_docstring(parsed(init)) or ""))
        missing = {path.stem for path in folder.glob("*.py")} - {"__init__"} - words
        assert not missing, f"{init}: say what is in {sorted(missing)}"
