"""`wsap tes3mp check`: the conformance suite against a bridge."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.cli.params import json_option
from wsap_core.untrusted import single_line

_MARKS = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip"}


@click.command(
    cls=GroupedCommand,
    examples=("wsap tes3mp check http://127.0.0.1:8765", "wsap tes3mp check http://127.0.0.1:8765 --act"),
)
@click.argument("url")
@click.option("--agent", metavar="ID", help="The agent to perceive and act as; required if there are several.")
@click.option("--act", is_flag=True, help="Also act in the world: walk, wait, write a note; as a new agent if one "
              "can join.")  # fmt: skip
@click.option("--token-file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="The file with the bridge's token. Default: that of wsap tes3mp serve here.")  # fmt: skip
@click.option("--only", multiple=True, metavar="CHECK", help="Run only this check; may be repeated.")
@json_option
def check(
    url: str, *, agent: str | None, act: bool, token_file: Path | None, only: tuple[str, ...], as_json: bool
) -> None:
    """Check that the bridge at URL conforms to the protocol; the three endpoints of protocol 1.0.0 are enough.

    Without --act the bridge is sent no command that it could execute. The exit status is 1 if a check fails.
    """

    # Deferred for weight: `wsap tes3mp --help` needs no client.
    from wsap_core.textfile import read_text
    from wsap_tes3mp.client import BridgeClient, local_token
    from wsap_tes3mp.conformance import CheckResult, run_checks

    token = local_token(url) if token_file is None else read_text(token_file, "The bridge's token").strip()

    def tell(result: CheckResult) -> None:
        if not as_json:
            reason = f" ({single_line(result.reason)})" if result.reason else ""
            click.echo(f"{_MARKS[result.status]}  {result.name:<16}{result.summary}{reason}")

    async def run() -> list[CheckResult]:
        async with BridgeClient(url, token, strict=True) as client:
            return await run_checks(client, agent=agent, act=act, only=only, progress=tell)

    results = asyncio.run(run())
    failed = sum(result.status == "failed" for result in results)
    skipped = sum(result.status == "skipped" for result in results)
    if as_json:
        print_json({"url": url, "ok": not failed, "checks": [asdict(result) for result in results]})
    else:
        click.echo(f"\n{len(results) - failed - skipped} passed, {failed} failed, {skipped} skipped.")
    if failed:
        click.get_current_context().exit(1)
