"""The hooks of this package, which import nothing before it is used."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AgentSpec, BackendSpec, MemorySpec, OptionDef, ToolSpec
from wsap_llm.options.table import OPTIONS

REMEMBER = OptionDef("remember", "Whether notes are added to the agent's memory.", "yes", "yes|no")


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Register the agent `llm`."""
    return [
        AgentSpec(
            "llm",
            "Decides by a language model; select it with --model ADDRESS (wsap models lists them).",
            "wsap_llm.create:create",
            abilities=("snapshot",),
            options=OPTIONS,
        )
    ]


@hookimpl
def wsap_memories() -> Iterable[MemorySpec]:
    """Register the memories."""
    home = "wsap_llm.memory"
    return [
        MemorySpec("none", "Remembers nothing.", f"{home}.nothing:create"),
        MemorySpec(
            "fifo",
            "The last steps in detail, and a running summary of all before.",
            f"{home}.fifo:create",
            f"{home}.fifo:DECLARED",
        ),
        MemorySpec("facts", "Facts, plans and history.", f"{home}.facts:create", f"{home}.facts:DECLARED"),
        MemorySpec(
            "fulltext",
            "Everything experienced, searched by relevance, recency and importance; across runs in a file.",
            f"{home}.fulltext:create",
            f"{home}.fulltext:DECLARED",
        ),
    ]


@hookimpl
def wsap_tools() -> Iterable[ToolSpec]:
    """Register the tools."""
    home = "wsap_llm.tools"
    return [
        ToolSpec("calculator", "Evaluates arithmetic.", f"{home}.calculator:create"),
        ToolSpec("notes", "An agent's own notes, by title.", f"{home}.notes:create", (REMEMBER,)),
        ToolSpec("recall", "Searches the agent's memory.", f"{home}.recall:create", f"{home}.recall:DECLARED"),
        ToolSpec(
            "mcp",
            "Tools of any MCP server; needs wsap-llm[mcp].",
            "wsap_llm.mcp.source:create",
            "wsap_llm.mcp.config:DECLARED",
        ),
    ]


@hookimpl
def wsap_backends() -> Iterable[BackendSpec]:
    """Register the backends over HTTP, and the scripted one."""
    home = "wsap_llm.backends"
    return [
        BackendSpec(
            "openai",
            "Any server that speaks OpenAI's protocol: vLLM, llama.cpp, LM Studio, OpenAI.",
            f"{home}.openai.backend:create",
            models=f"{home}.openai.backend:listing",
            options=f"{home}.openai.options:DECLARED",
        ),
        BackendSpec(
            "litellm",
            "A hundred providers through litellm; needs wsap-llm[litellm].",
            f"{home}.litellm:create",
            models=f"{home}.litellm:listing",
            options=f"{home}.litellm:DECLARED",
        ),
        BackendSpec(
            "scripted",
            "Always returns the reply in the option `reply`; for experiments and tests.",
            "wsap_llm.scripted:create",
            models="wsap_llm.scripted:listing",
            options=(OptionDef("reply", "The reply to every request, as text or JSON."),),
        ),
    ]
