"""What every command shares: its output options, its examples, and the way it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

import rich_click as click

from accelctl.params import DURATION
from accelctl.session import FORMATS, Session
from accelctl.view import View


def write_examples(lines: Sequence[str], formatter: Any) -> None:
    """Ends a help with lines that may be copied as they are: not wrapped, no box around."""
    if lines:
        formatter.write(" Examples:\n" + "".join(f"   {line}\n" for line in lines))


class Command(click.RichCommand):
    examples: tuple[str, ...] = ()

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(self.examples, formatter)


class Noun(click.RichGroup):
    """A group that says which command was meant."""

    examples: tuple[str, ...] = ()

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(self.examples, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            known = self.list_commands(ctx)
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(known)}"
            raise click.UsageError(f"no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


F = TypeVar("F", bound=Callable[..., Any])
WATCH_S = "2"

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    metavar="FORM",
    help="table, wide, json, jsonl, yaml, csv or name; json, yaml and csv carry every field.",
)
watch_option = click.option(
    "--watch",
    type=DURATION,
    is_flag=False,
    flag_value=WATCH_S,
    metavar="[SECONDS]",
    help="Show it again and again, every 2 seconds unless told otherwise.",
)


def viewed(function: F) -> F:
    """Hands the command its Session and View, with -o and --watch."""
    return _with_view(output_option(watch_option(function)))


def printed(function: F) -> F:
    """As `viewed`, without --watch: the command changes something, or streams by itself."""
    return _with_view(output_option(function))


def _with_view(function: F) -> F:
    @wraps(function)
    def run(*args: Any, output: str | None, watch: float | None = None, **rest: Any) -> Any:
        context = click.get_current_context()
        session = context.find_object(Session) if context is not None else None
        assert session is not None
        session.output = output or session.output
        session.watch_s = watch or session.watch_s
        return function(session, View(session), *args, **rest)

    # click keeps the options of a decorated function on it; wraps() has copied them.
    return run  # type: ignore[return-value]


def examples(*lines: str) -> Callable[[F], F]:
    """Examples at the end of a command's help. The tests run each of them."""

    def keep(function: F) -> F:
        function.examples = lines  # type: ignore[attr-defined]
        return function

    return keep


def command(group: click.Group, name: str) -> Callable[[F], click.Command]:
    """Adds a command to its noun; the first line of its docstring is its short help."""

    def add(function: F) -> click.Command:
        made = lone(name, function)
        group.add_command(made)
        return made

    return add


def lone(name: str, function: Callable[..., Any]) -> click.Command:
    """A command that stands without a noun, with its examples."""
    made: Command = click.command(name, cls=Command)(function)
    made.examples = getattr(function, "examples", ())
    return made
