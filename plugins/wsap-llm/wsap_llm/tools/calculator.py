"""The calculator tool."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.protocol import ParamDef, Tool
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context
from wsap_llm.tools.arithmetic import LONGEST, ArithmeticProblem, evaluate, spoken


class Calculator:
    """Evaluates arithmetic and nothing else."""

    inward = True
    """What it does stays within the agent."""
    definition = Tool(
        "calculator",
        "Works out arithmetic: + - * / // % ** brackets, pi, e, sqrt, abs, min, max, round, floor, ceil, log, exp.",
        [
            ParamDef(
                "expression",
                schema={"type": "string", "minLength": 1, "maxLength": LONGEST},
                description="Such as (3 + 4) * 2",
            )
        ],
    )

    def run(self, parameters: Mapping[str, JsonValue]) -> str:
        """Return the value of `expression`, or why it can't be worked out. Bounded in time by the bounds on size."""
        try:
            return spoken(evaluate(str(parameters.get("expression", ""))))
        except ArithmeticProblem as problem:
            return f"That can't be worked out: {problem}."


def create(context: Context) -> Calculator:
    """Return a calculator."""
    return Calculator()
