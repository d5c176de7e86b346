"""What this package registers. Light: nothing of it is imported before it is used."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AgentSpec, BackendSpec, MemorySpec, ToolSpec
from wsap_llm.option_table import OPTIONS


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Offer the agent that lets a language model decide."""
    return [
        AgentSpec(
            "llm",
            "A language model decides; name it with --model ADDRESS (wsap models lists them).",
            "wsap_llm.create:create",
            abilities=("snapshot",),
            options=OPTIONS,
        )
    ]


@hookimpl
def wsap_memories() -> Iterable[MemorySpec]:
    """Offer what agents can remember with."""
    home = "wsap_llm.memory"
    return [
        MemorySpec("none", "Remembers nothing.", f"{home}.nothing:create"),
        MemorySpec("fifo", "The last steps in detail, and a running summary of all before.", f"{home}.fifo:create"),
        MemorySpec("facts", "Facts, plans and history.", f"{home}.facts:create"),
        MemorySpec(
            "fulltext",
            "Everything lived through, found by relevance, recency and importance; across runs in a file.",
            f"{home}.fulltext:create",
        ),
    ]


@hookimpl
def wsap_tools() -> Iterable[ToolSpec]:
    """Offer what agents can use while they think."""
    home = "wsap_llm.tools"
    return [
        ToolSpec("calculator", "Works out arithmetic.", f"{home}.calculator:create"),
        ToolSpec("notes", "An agent's own notes, by title.", f"{home}.notes:create"),
        ToolSpec("recall", "Searches the agent's memory.", f"{home}.recall:create"),
        ToolSpec("mcp", "Tools of any MCP server: pip install 'wsap-llm[mcp]'.", "wsap_llm.mcp.source:create"),
    ]


@hookimpl
def wsap_backends() -> Iterable[BackendSpec]:
    """Offer language models over HTTP, and the backend that says what it is told to say."""
    home = "wsap_llm.backends"
    return [
        BackendSpec(
            "openai",
            "Any server that speaks OpenAI's protocol: vLLM, llama.cpp, LM Studio, OpenAI itself.",
            f"{home}.openai:create",
            models=f"{home}.openai:listing",
        ),
        BackendSpec(
            "litellm",
            "A hundred providers through litellm: pip install 'wsap-llm[litellm]'.",
            f"{home}.litellm:create",
            models=f"{home}.litellm:listing",
        ),
        BackendSpec(
            "scripted",
            "Always gives the reply in the option `reply`; for trying things out and for tests.",
            "wsap_llm.scripted:create",
            models="wsap_llm.scripted:listing",
        ),
    ]
