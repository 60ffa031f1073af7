"""accelctl: noun verb. Nouns are loaded when they are named, so each command starts fast."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import Any

import rich_click as click

from accel.errors import AccelError
from accelctl import exits
from accelctl.options import Noun, output_option, watch_option, write_examples
from accelctl.params import DURATION
from accelctl.session import Session

AGAIN_S = 0.001  # until an interrupt that was lost comes once more

# noun or lone verb -> module below commands/, in the order of the help; each has `cli`.
NOUNS = {
    "card": "card",
    "hbm": "hbm",
    "oe": "oe",
    "lane": "lane",
    "link": "link",
    "topo": "topo",
    "cp": "cp",
    "transfer": "transfer",
    "diag": "diag",
    "bench": "bench",
    "health": "health",
    "event": "event",
    "fault": "fault",
    "scenario": "scenario",
    "metrics": "metrics",
    "completion": "completion",
    "version": "version",
}


class Nouns(Noun):
    """Imports a noun's module at the moment it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(NOUNS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = NOUNS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = import_module(f"accelctl.commands.{module}").cli
        return command

    def invoke(self, ctx: click.Context) -> Any:
        # click would answer both in its own way before they reach run().
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise exits.Interrupted from None
        except BrokenPipeError:
            raise exits.ReaderGone from None

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(EXAMPLES, formatter)
        formatter.write(EXIT_CODES)


EXAMPLES = (
    "accelctl",
    "accelctl link list",
    "accelctl cp ./file card0:weights",
    "accelctl cp card0:weights card1:weights",
)
EXIT_CODES = """
 Exit codes: 0 ok, 1 condition false, 2 usage, 3 not found, 4 denied, 5 daemon
 unreachable, 6 precondition or conflict, 7 timed out, 8 partly done,
 70 internal, 130 interrupted."""


def _print_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from accelctl.commands.version import own_version

        click.echo(f"accelctl {own_version()}")
        context.exit()


@click.group(
    cls=Nouns,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="The version of accelctl; 'accelctl version' tells the daemon's, too.",
)
@click.option(
    "--socket",
    metavar="PATH",
    help="The daemon's socket, instead of ACCEL_SOCKET or the usual place.",
)
@click.option(
    "--timeout",
    type=DURATION,
    default="10",
    metavar="SECONDS",
    help="Longest wait for one answer; 10 seconds unless told otherwise.",
)
@click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    metavar="WHEN",
    help="auto, always or never; auto obeys NO_COLOR.",
)
@output_option
@watch_option
@click.pass_context
def cli(
    ctx: click.Context,
    socket: str | None,
    timeout: float,
    color: str,
    output: str | None,
    watch: float | None,
) -> None:
    """Manage emulated accelerator cards that talk by light.

    Alone, it shows the status of this host: cards, links, running transfers, last events.
    """
    session = Session(socket, timeout, output or "table", watch, color)
    ctx.obj = session
    ctx.call_on_close(session.close)
    if ctx.invoked_subcommand is None:
        from accelctl.commands.status import show

        show(session)


FULL = (errno.ENOSPC, errno.EDQUOT)


def run(arguments: Sequence[str]) -> int:
    """Runs one command line; gives its exit code. Never lets a traceback out."""
    as_json = _asks_for_json(arguments)
    try:
        # Without standalone_mode, --help and the like come back as a number.
        code = cli.main(list(arguments), prog_name="accelctl", standalone_mode=False)
        return code if isinstance(code, int) else exits.OK
    except click.UsageError as error:
        return exits.report(_usage(error), as_json=as_json)
    except exits.Interrupted as error:
        return _interrupted(error.message)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted("interrupted")
    except exits.ReaderGone:
        _mute()  # It has seen enough.
        return exits.OK
    except (AccelError, exits.Failed) as error:
        return exits.report(error, as_json=as_json)
    except Exception as error:
        if _is_full(error):
            _mute()
            full = exits.Failed("cannot write stdout: the disk is full", exits.CONFLICT, "NO_SPACE")
            return exits.report(full, as_json=as_json)
        if os.environ.get("ACCELCTL_TRACEBACK"):
            raise
        return exits.report(
            exits.Failed(
                f"internal error: {type(error).__name__}: {error}; "
                "ACCELCTL_TRACEBACK=1 shows where",
                exits.INTERNAL,
                "INTERNAL",
            ),
            as_json=as_json,
        )


def _is_full(error: Exception) -> bool:
    """Whether what we print had no room; a file that has a name is told of where it is written."""
    return isinstance(error, OSError) and error.errno in FULL and error.filename is None


def _interrupted(message: str) -> int:
    if sys.stderr.isatty():
        print(file=sys.stderr)  # The terminal has shown ^C.
    if message:
        print(f"accelctl: {message}", file=sys.stderr)
    return exits.INTERRUPTED


def _usage(error: click.UsageError) -> exits.Failed:
    ctx = error.ctx
    message = error.format_message().rstrip(".")
    if isinstance(error, click.BadParameter) and error.message.startswith("'"):
        # The types' own sentences name the value and what works; only the option is missing.
        message = error.message.rstrip(".")
        option = error.param is not None and error.param.param_type_name == "option"
        if option and error.param is not None:
            message = f"{error.param.opts[0]}: {message}"
    path = ctx.command_path if ctx is not None else "accelctl"
    return exits.Failed(f"{message}; see {path} --help", exits.USAGE, "USAGE")


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether errors go out as JSON too; read by hand, because the mistake may be in the line."""
    pairs = zip(arguments, [*arguments, ""][1:], strict=True)
    return any(
        (word in ("-o", "--output") and value in ("json", "jsonl"))
        or word in ("-ojson", "-ojsonl", "--output=json", "--output=jsonl")
        for word, value in pairs
    )


def interrupt(number: int, frame: FrameType | None) -> None:
    """Answers every signal that means stop as Python answers Ctrl-C."""
    raise KeyboardInterrupt


def interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """An interrupt that fell where nothing can be raised, as in the middle of a library's C code,
    comes once more in a moment; anything else is told as ever."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    else:
        sys.__unraisablehook__(lost)


def let_print_anywhere() -> None:
    """A terminal that does not know a letter gets a ? in its place, not a failure."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _mute()


def _mute() -> None:
    """Python flushes stdout once more at its end, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
