"""The command `acceld`. Each subcommand imports what it needs when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sized
from pathlib import Path
from typing import NoReturn

import click

PASS_ON = {"ignore_unknown_options": True, "help_option_names": []}


def _print_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from importlib.metadata import version

        _print(f"acceld {version('acceld')}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Emulated AI accelerator cards that talk by light, and the daemon that manages them."""


@cli.command()
@click.option("--config", type=click.Path(path_type=Path), help="Cards and fibres, TOML.")
@click.option("--state-dir", type=click.Path(path_type=Path), help="Folder of the store.")
@click.option("--socket", type=click.Path(path_type=Path), help="Unix socket of the API.")
@click.option("--metrics", metavar="HOST:PORT|off", help="Default: 127.0.0.1:9437.")
@click.option(
    "--metrics-collect",
    multiple=True,
    metavar="GROUP",
    help="Scrape this opt-in group of metrics too, as lane_flags.",
)
@click.option(
    "--chassis",
    type=click.Choice(["auto", "own", "attach"]),
    default="auto",
    show_default=True,
    help="The hardware: attach to one that runs, or power on an own one that ends with the daemon.",
)
@click.option("--hardware-socket", type=click.Path(path_type=Path), help="Socket of the chassis.")
@click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "console"]),
    default="auto",
    show_default=True,
    help="auto: console on a terminal, json otherwise.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
def serve(
    config: Path | None,
    state_dir: Path | None,
    socket: Path | None,
    metrics: str | None,
    metrics_collect: tuple[str, ...],
    chassis: str,
    hardware_socket: Path | None,
    log_format: str,
    log_level: str,
) -> None:
    """Run the daemon in the foreground.

    \b
    acceld serve --config examples/pair.toml
    """
    from acceld.config import Options, decide
    from acceld.errors import StartFailure
    from acceld.logs import configure

    options = Options(
        config,
        state_dir,
        socket,
        metrics,
        chassis,
        hardware_socket,
        log_format,
        log_level,
        metrics_collect,
    )
    try:
        settings = decide(options)
        configure(log_format, log_level)
        _run(settings)
    except StartFailure as failure:
        _end(failure.message, failure.exit_code)


def _run(settings: object) -> None:
    import asyncio

    from acceld.app import App
    from acceld.config import Settings

    assert isinstance(settings, Settings)

    async def run() -> None:
        await App(settings).run()

    asyncio.run(run())


@cli.command("check-config")
@click.argument("file", type=click.Path(path_type=Path))
def check_config(file: Path) -> None:
    """Name each mistake of a configuration.

    \b
    acceld check-config examples/pair.toml
    """
    from acceld.config import read_config
    from acceld.errors import StartFailure

    try:
        config = read_config(file)
    except StartFailure as failure:
        _print(failure.message)
        count = len(failure.message.splitlines())
        _end(f"{file}: {count} mistake{'s' if count != 1 else ''}", failure.exit_code)
    lanes = sum(card.profile.signal_lines for card in config.cards)
    counts = _count(config.cards, "card"), f"{lanes} lane{'s' * (lanes != 1)}"
    _print(f"{file}: good, {', '.join(counts)}, {_count(config.fibres, 'fibre')}")
    for fibre in config.fibres:
        far = str(fibre.b.port) if fibre.b else "outside"
        _print(f"  {fibre.name}: {fibre.a.port} to {far}, {fibre.transport.value},"
                   f" {fibre.length_m:g} m, {fibre.loss_db:.2f} dB")  # fmt: skip


@cli.command("make-config")
@click.option("--cards", type=int, default=2, show_default=True)
@click.option("--profile", default="oio", show_default=True, help="dr8, oio or single.")
@click.option("--shape", default="pairs", show_default=True, help="pairs, ring or mesh.")
@click.option("--transport", default="veth", show_default=True, help="veth, tap or memory.")
@click.option("--mtu", type=int, default=65535, show_default=True)
@click.option("--length", type=float, default=10.0, show_default=True, help="Metres of fibre.")
def make_config(
    cards: int, profile: str, shape: str, transport: str, mtu: int, length: float
) -> None:
    """Print the configuration of a rack whose engines are all joined.

    \b
    acceld make-config --cards 64 --shape ring --transport memory > rack.toml
    """
    from acceld.config import rack_text
    from acceld.errors import StartFailure

    try:
        _print(rack_text(cards, profile, shape, transport, mtu, length), nl=False)
    except StartFailure as failure:
        _end(failure.message, failure.exit_code)


@cli.command(context_settings=PASS_ON, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def chassis(arguments: tuple[str, ...]) -> None:
    """Run the emulated hardware alone (see acceld chassis --help)."""
    os.execv(sys.executable, [sys.executable, "-m", "accelhw.chassis", *arguments])


@cli.command(context_settings=PASS_ON, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: tuple[str, ...]) -> None:
    """Carry a file by light (see acceld demo --help)."""
    from acceld.demo import main as run_demo

    sys.exit(run_demo(list(arguments)))


def _count(things: Sized, word: str) -> str:
    return f"{len(things)} {word}{'s' * (len(things) != 1)}"


def _print(text: str, nl: bool = True) -> None:
    try:
        click.echo(text, nl=nl)
    except BrokenPipeError:
        raise  # click ends quietly: the reader has seen enough.
    except OSError as error:
        from acceld.errors import EXIT_CONFLICT

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # It is flushed once more.
        _end(f"cannot write stdout: {error.strerror}", EXIT_CONFLICT)


def _end(message: str, code: int) -> NoReturn:
    click.echo(f"acceld: {message}", err=True)
    sys.exit(code)


def main() -> None:
    try:
        cli(prog_name="acceld")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
