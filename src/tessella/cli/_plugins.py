"""Commands of other distributions: every entry point of the group ``tessella.commands``.

An entry point names a ``typer.Typer``. It is loaded when its command is used or listed, so that a
distribution that is broken is in nobody's way, and errors are shown as those of our own commands.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

import typer
from typer.core import TyperGroup

from tessella.cli._errors import EXIT_BAD_INPUT, complain, one_line_errors

GROUP = "tessella.commands"

# Commands that users look for here, and how they come in.
_ELSEWHERE = {
    "benchmark": "is a distribution of its own, in the folder bench of the repository; in a "
    "checkout: python -m pip install '.[bench]' ./bench",
}


class CommandGroup(TyperGroup):
    """Our commands, and those of other distributions after them. Ours cannot be replaced."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands, in the order of the help."""
        own = super().list_commands(ctx)
        return [*own, *sorted(set(_plugins()) - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by name; one that cannot be loaded says why when it is run."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        plugins = _plugins()
        if cmd_name in plugins:
            return _load(plugins[cmd_name])
        if cmd_name in _ELSEWHERE:
            return _unavailable(cmd_name, _ELSEWHERE[cmd_name])
        return None

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what users can put right is told in one line."""
        with one_line_errors():
            return super().invoke(ctx)


def _plugins() -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def _load(entry: metadata.EntryPoint) -> Any:
    origin = entry.dist.name if entry.dist is not None else entry.value
    try:
        commands = entry.load()
        if not isinstance(commands, typer.Typer):
            raise TypeError(f"{entry.value} is no typer.Typer")
        command = typer.main.get_command(commands)
    except Exception as error:  # anything may be wrong with code that is not ours
        reason = " ".join(str(error).split())
        return _unavailable(
            entry.name, f"of {origin} cannot be loaded: {type(error).__name__}: {reason}"
        )
    command.name = entry.name
    return command


def _unavailable(name: str, why: str) -> Any:
    """A command that takes any arguments and fails with one line."""
    stub = typer.Typer(add_completion=False)
    message = f"the command {name!r} {why}"

    @stub.command(
        name,
        help=f"Not available: {message}.",
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def fail() -> None:
        complain("error", message)
        raise typer.Exit(EXIT_BAD_INPUT)

    return typer.main.get_command(stub)
