"""Write `docs/reference/model-options.md` from the options that backends declare.

    python tools/write_model_options.py

A test compares the page with what this writes.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "model-options.md"
HEAD = """# Options of model backends

Set them with `--model-option KEY=VALUE`, or in Python and for single seats as an option `model.KEY` of the agent `llm`.
Values are parsed as JSON if possible, and are text otherwise. A misspelt option is refused with a suggestion. API keys
are given only as `env:NAME`, the name of a variable. `python tools/write_model_options.py` generates this page.
"""
BACKENDS = {
    "openai": ("wsap_llm.backends.openai.options", "OpenAIOptions"),
    "litellm": ("wsap_llm.backends.litellm", "LiteLLMOptions"),
    "inspect": ("wsap_eval.inspect_backend", "InspectOptions"),
    "ollama": ("wsap_ollama.options", "OllamaOptions"),
    "outlines": ("wsap_outlines.options", "Options"),
}
AFTER = {
    "openai": """
If a server refuses an optional field (`temperature`, `top_p`, `seed`, `tool_choice`, the field that switches thinking,
a system message ...) with status 400 or 422, the field is omitted from then on, with one notice.
`--agent-option temperature=none` (`top_p`, `max_tokens`) never sends it.
""",
    "ollama": "Options of Ollama's runtime are accepted by name, too:\n{runtime}.\n",
}
TAIL = """## scripted

`reply`: the reply to every request, as text or JSON:
`--model scripted/x --model-option 'reply={"action": "wait", "params": {}}'`.

## Redirects, retries, usage

No backend follows redirects: prompts and keys go only to the named server. A request with a transient failure is
sent up to five times; each time-out and each pause of more than two seconds is reported. A failure that the provider
reports inside a reply counts as one, too; a content filter, or JSON of the model that the server refuses, is an
unusable reply of the model, whatever the status. Impossible usage values (negative, not a number, beyond 10⁹ tokens or
a million dollars a call) are replaced by an estimate of unknown cost, with one notice.
"""


def described(cls: type) -> dict[str, str]:
    """Return the docstrings of a class's fields, each on one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        line.target.id: " ".join(str(after.value.value).split())
        for line, after in zip(body.body, body.body[1:], strict=False)
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    }


def default_of(option: Field[object]) -> str:
    """Return the default as text; empty for None or an empty value."""
    if option.default is None or option.default is MISSING:
        return ""
    return f"`{str(option.default).lower() if isinstance(option.default, bool) else option.default}`"


def table(cls: type) -> Iterator[str]:
    """Yield the lines of a table of a class's options."""
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    texts = described(cls)
    kinds = get_type_hints(cls)
    for option in fields(cls):
        text = texts[option.name].replace("when None", "when not given")
        if get_origin(kinds[option.name]) is Literal:
            text += f" One of {', '.join(f'`{choice}`' for choice in get_args(kinds[option.name]))}."
        yield f"| `{option.name}` | {default_of(option)} | {text} |"


def page() -> str:
    """Return the page."""
    names = importlib.import_module("wsap_ollama.options").RUNTIME
    runtime = textwrap.fill(", ".join(f"`{name}`" for name in names), 110)
    parts = [HEAD]
    for name, (module, cls) in BACKENDS.items():
        parts += [f"## {name}\n", *table(getattr(importlib.import_module(module), cls)), ""]
        if name in AFTER:
            parts.append(AFTER[name].lstrip().format(runtime=runtime))
    return "\n".join([*parts, TAIL])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
