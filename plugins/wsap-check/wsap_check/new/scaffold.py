"""What `wsap new` makes: a package of one's own from a folder of templates."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import keyword
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from wsap_core import __version__
from wsap_core.discovery import find_plugins
from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.untrusted import single_line

LONGEST = 30
"""Most characters of a name, so that its lines fit."""
SEATS = range(2, 21)
"""The numbers of seats of a game of several seats."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_KERNEL, _RUNTIME, _CLICK = f"wsap-core~={__version__}", f"wsap-nexus~={__version__}", "click>=8.1"
_TEMPLATE = ".in"


@dataclass(frozen=True)
class Kind:
    """A kind of package."""

    summary: str
    """What the package made is, in a sentence."""
    use: str
    """The command that uses it."""
    requires: tuple[str, ...] = (_KERNEL,)
    """The requirements of the package."""


_PLAYED = (_KERNEL, _RUNTIME)

KINDS: Mapping[str, Kind] = {
    "game": Kind("Find a hidden number in a few guesses.", "wsap play {{name}}", _PLAYED),
    "world": Kind("Walk through a garden with walls, and find the lamp.", "wsap play {{name}}", _PLAYED),
    "agent": Kind("Repeats what has paid, and otherwise tries what is possible.", "wsap play crafter --agent {{name}}"),
    "backend": Kind("Repeats what it hears.", "wsap play crafter --model {{name}}/soft"),
    "memory": Kind(
        "Keeps the latest steps and notes of an agent.", "wsap play crafter --model MODEL --memory {{name}}"
    ),
    "tool": Kind("Counts the words of a text.", "wsap play crafter --model MODEL --tools {{name}}"),
    "listener": Kind("Logs who enters, leaves and dies.", "wsap nexus start", _PLAYED),
    "command": Kind("Lists the actions of a game.", "wsap {{name}} crafter", (_CLICK, _KERNEL)),
}
"""Kind -> what `wsap new KIND` makes."""

_BIDS = "Bid for prizes whose worth is a secret of each player."
_SEVERAL = "seats"
"""The folder of the templates of a game of several seats."""


def make(kind: str, name: str, parent: Path, *, seats: int = 1) -> Path:
    """Make a package of a kind in a new folder, and return the folder; if it can't be made, nothing is.

    Args:
        kind: one of `KINDS`.
        name: the name of the package, of what it offers, and of the folder.
        parent: the folder for the new one.
        seats: the number of seats of a game.

    Raises:
        UsageError: the name can't be used, the folder exists or can't be written, or the kind has no seats.
    """
    module = refuse_name(name)
    target = parent / name
    if target.exists() or target.is_symlink():
        raise UsageError(f"There is a folder or file {name!r} already; choose another name, or move it away.")
    several = seats != 1
    if several and (kind != "game" or seats not in SEATS):
        raise UsageError(f"A game has {SEATS[0]} to {SEATS[-1]} seats with --seats, and only a game has them.")
    about = KINDS[kind]
    words = {
        "name": name,
        "module": module,
        "Class": "",
        "title": name.replace("-", " ").capitalize(),
        "kind": kind,
        "article": f"an {kind}" if kind[0] in "aeiou" else f"a {kind}",
        "summary": _BIDS if several else about.summary,
        "requires": ", ".join(f'"{each}"' for each in about.requires),
        "use": about.use.replace("{{name}}", name),
        "seats": str(seats),
        "version": __version__,
    }
    templates = files("wsap_check") / "templates"
    own = templates / (_SEVERAL if several else kind)
    words["Class"] = _class_name(name, kind, own)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=parent) as made:
            whole = Path(made) / name
            _fill(templates / "every", whole, words)
            _fill(own, whole, words)
            whole.rename(target)
    except OSError as error:
        raise UsageError(f"The folder {name!r} can't be made: {error.strerror or error}.") from error
    return target


def refuse_name(name: str) -> str:
    """Return the name of the module of a package; `UsageError` if no package should be called so."""
    shown = repr(single_line(name)[:60])
    if not _NAME.fullmatch(name) or len(name) > LONGEST:
        raise UsageError(
            f"{shown} can't be a name: it must be a-z, digits and single dashes, begin with a letter, and have at most "
            f"{LONGEST} characters."
        )
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or keyword.issoftkeyword(module):
        raise UsageError(f"{shown} is a word of Python's own language; choose another name.")
    if module in sys.stdlib_module_names:
        raise UsageError(f"{shown} is a module of Python's standard library; choose another name.")
    if module == "tests" or _is_installed(name, module):
        raise UsageError(f"{shown} would hide another module of that name; choose another name.")
    host = PluginHost.discovered()
    for registry in (host.games, host.agents, host.backends, host.memories, host.tools, host.commands):
        if name in registry.names():
            raise UsageError(f"WSAP has something called {shown} already; choose another name.")
    return module


def _class_name(name: str, kind: str, templates: Traversable) -> str:
    """Return the name of the class, which is none that the templates use for something else."""
    found = "".join(part.capitalize() for part in name.split("-"))
    texts = (each.read_text(encoding="utf-8") for each in templates.iterdir())
    return found + kind.capitalize() if any(re.search(rf"\b{found}\b", text) for text in texts) else found


def _is_installed(name: str, module: str) -> bool:
    """Return whether a distribution, a plugin or an importable module has the name."""
    if any(name in (found.name, found.distribution) for found in find_plugins()):
        return True
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        found = importlib.util.find_spec(module)
        return found is not None and found.origin is not None  # a folder without modules hides nothing
    return True


def _fill(templates: Traversable, folder: Path, words: Mapping[str, str]) -> None:
    """Write templates, with the words in them, where they belong."""
    for template in templates.iterdir():
        name = template.name.removesuffix(_TEMPLATE)
        if template.is_dir():
            _fill(template, folder / name, words)
            continue
        inside = {"plugin.py", "__init__.py", "py.typed", f"{words['kind']}.py"}
        where = folder / words["module"] if name in inside else folder
        where = folder / "tests" if name == "test.py" else where
        where.mkdir(parents=True, exist_ok=True)
        name = f"test_{words['module']}.py" if name == "test.py" else name
        text = re.sub(r"\{\{(\w+)\}\}", lambda match: words[match[1]], template.read_text(encoding="utf-8"))
        (where / name).write_text(text, encoding="utf-8", newline="\n")
