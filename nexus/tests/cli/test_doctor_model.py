"""What `wsap doctor` advises about a model can be done."""

from __future__ import annotations

import inspect
import re

from wsap_llm.backends.openai.options import OpenAIOptions
from wsap_llm.options.table import OPTIONS
from wsap_nexus.cli import doctor_model
from wsap_ollama.options import OllamaOptions


def test_options_that_are_advised_exist() -> None:
    advice = inspect.getsource(doctor_model)
    asked = set(re.findall(r"--agent-option (\w+)=", advice))
    backend = set(re.findall(r"--model-option (\w+)=", advice))
    assert asked
    assert backend
    assert asked <= {option.name for option in OPTIONS}
    assert backend <= OllamaOptions.__dataclass_fields__.keys() | OpenAIOptions.__dataclass_fields__.keys()
