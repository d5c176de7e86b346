"""Measure an evaluation of a list of questions beside Inspect's of the same.

    python benchmarks/bench_questions.py [--rounds 3] [--repeats 20]

Both commands ask a model without latency 20 questions with choices, 20 times each, from an empty folder, in turns:
`wsap eval` asks its scripted model, Inspect its own `mockllm/model`, whose replies state their tokens, since it would
otherwise download an encoding. Needs inspect-ai (the extra `wsap-eval[inspect]`). Printed are the seconds with the
start of the command and of processor time, WSAP's relative to Inspect's of the same round, as medians with minimum and
maximum, and both scores. Goal: not slower, a median of the first of at most 1; else the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUESTIONS = 20
WSAP = """
from pathlib import Path

from wsap_eval import questions

Quiz = questions(Path(__file__).with_name("questions.jsonl"))
"""
INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice


@task
def quiz():
    return Task(json_dataset("questions.jsonl"), solver=multiple_choice(), scorer=choice(), epochs={repeats})
"""
REPLY = 'scripted/reply,model.reply={"action":"b"},style=json,label=model'


def seconds_of(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[float, float, str]:
    """Return how long a command takes in a folder, the seconds of processor time, and its output."""
    began, before = time.perf_counter(), os.times()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    taken, after = time.perf_counter() - began, os.times()
    busy = after.children_user + after.children_system - before.children_user - before.children_system
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return taken, busy, done.stdout


def with_wsap(folder: Path, repeats: int) -> tuple[float, float, float]:
    """Return the seconds, those of processor time and the score of `wsap eval`."""
    words = ["--game", "./quiz.py:Quiz", "--entrant", REPLY, "--seeds", str(QUESTIONS), "--repeats", str(repeats)]
    words += ["--out", "results", "--json"]
    taken, busy, told = seconds_of(
        [str(Path(sys.executable).with_name("wsap")), "eval", *words], folder, dict(os.environ)
    )
    (row,) = json.loads(told)["rows"]
    assert row["outcomes"] == {"finished": QUESTIONS * repeats}, row["outcomes"]
    return taken, busy, row["figure"]["mean"]


def with_inspect(folder: Path, repeats: int) -> tuple[float, float, float]:
    """Return the seconds, those of processor time and the score of `inspect eval`, whose model always says the same."""
    message = {"role": "assistant", "content": "ANSWER: B"}
    usage = {"input_tokens": 60, "output_tokens": 4, "total_tokens": 64}
    output = json.dumps({"model": "mockllm/model", "choices": [{"message": message}], "usage": usage})
    code = (
        "from inspect_ai import eval\n"
        "from inspect_ai.model import ModelOutput, get_model\n"
        "from task import quiz\n"
        f"outputs = [ModelOutput.model_validate_json({output!r}) for _ in range({QUESTIONS * repeats})]\n"
        "model = get_model('mockllm/model', custom_outputs=outputs)\n"
        "(log,) = eval(quiz(), model=model, log_dir='logs', display='none')\n"
        "assert log.status == 'success' and len(log.samples) == len(outputs), log.error\n"
        "print(log.results.scores[0].metrics['accuracy'].value)\n"
    )
    taken, busy, told = seconds_of([sys.executable, "-c", code], folder, {**os.environ, "INSPECT_LOG_LEVEL": "error"})
    return taken, busy, float(told.split()[-1])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    lines = [
        {"input": f"Is {n} an even number?", "target": "B" if n % 2 else "A", "choices": ["yes", "no"]}
        for n in range(QUESTIONS)
    ]
    ratios, work = [], []
    for number in range(given.rounds):
        found = {}
        for name, play in [("WSAP", with_wsap), ("Inspect", with_inspect)][:: 1 if number % 2 else -1]:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder)
                (path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
                (path / "quiz.py").write_text(WSAP)
                (path / "task.py").write_text(INSPECT.format(repeats=given.repeats))
                found[name] = play(path, given.repeats)
        ratios.append(found["WSAP"][0] / found["Inspect"][0])
        work.append(found["WSAP"][1] / found["Inspect"][1])
        told = ", ".join(
            f"{name} {taken:.1f} s, of the processor {busy:.1f} s (score {score:g})"
            for name, (taken, busy, score) in found.items()
        )
        print(f"round {number + 1}: {told}, ratios {ratios[-1]:.2f} and {work[-1]:.2f}", flush=True)
    middle = statistics.median(ratios)
    print(
        f"{QUESTIONS * given.repeats} samples with start: WSAP takes {middle:.2f} of Inspect's time "
        f"({min(ratios):.2f} to {max(ratios):.2f}), and {statistics.median(work):.2f} of its processor time "
        f"({min(work):.2f} to {max(work):.2f}); goal: at most 1"
    )
    sys.exit(middle > 1)


if __name__ == "__main__":
    main()
