"""accelctl completion: the script that lets a shell complete commands and addresses."""

from __future__ import annotations

import sys

import rich_click as click
from click.shell_completion import get_completion_class

from accelctl.options import examples, lone


@examples("accelctl completion bash", "accelctl completion zsh", "accelctl completion fish")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def _completion(shell: str) -> None:
    """Print the completion script of a shell.

    For bash, put this line into ~/.bashrc: eval "$(accelctl completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None
    context = click.get_current_context()
    assert context is not None
    root = context.find_root().command
    sys.stdout.write(kind(root, {}, "accelctl", "_ACCELCTL_COMPLETE").source() + "\n")


cli = lone("completion", _completion)
