"""Commands of other distributions."""

from importlib import metadata
from typing import ClassVar

import pytest
import typer

GROUP = "tessella.commands"  # of the entry points, as other distributions write it

hello = typer.Typer()


@hello.command()
def greet(name: str = "world") -> None:
    """Say hello."""
    if name == "nobody":
        raise ValueError("there is\nnobody")
    if name == "nowhere":
        raise FileNotFoundError(2, "No such file or directory", "nowhere")
    typer.echo(f"hello {name}")


class Plugin(metadata.EntryPoint):
    """An entry point of this module, whatever name pytest has given it."""

    loaded: ClassVar[list[str]] = []

    def load(self):
        self.loaded.append(self.name)
        return globals()[self.attr] if self.module == "here" else super().load()


@pytest.fixture
def installed(monkeypatch):
    """Have these commands installed, as names with the objects they stand for."""
    monkeypatch.setattr(Plugin, "loaded", [])

    def install(**commands):
        found = [Plugin(name, value, GROUP) for name, value in commands.items()]
        everything = metadata.entry_points
        monkeypatch.setattr(
            metadata,
            "entry_points",
            lambda **chosen: found if chosen == {"group": GROUP} else everything(**chosen),
        )

    install()
    return install


def test_a_command_of_another_distribution(run, installed):
    installed(hello="here:hello")
    assert run("hello --name Ada").stdout == "hello Ada\n"
    assert "Say hello." in run("--help").stdout
    assert run("hello --nonsense").exit_code == 2


def test_its_errors_look_like_ours(fails, installed):
    installed(hello="here:hello")
    fails("hello --name nobody", "tessella: error: there is nobody\n")
    fails("hello --name nowhere", "tessella: error: nowhere: No such file or directory\n")


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("no_such_module_anywhere:app", "ModuleNotFoundError: No module named"),
        ("json:no_such_name", "AttributeError: module 'json' has no attribute"),
        ("json:dumps", "TypeError: json:dumps is no typer.Typer"),
    ],
)
def test_a_broken_one_is_in_nobodys_way(run, fails, installed, place, reason):
    installed(broken=place, hello="here:hello")
    assert run("hello").stdout == "hello world\n"
    listing = run("--help")
    assert listing.exit_code == 0
    assert "Say hello." in listing.stdout
    assert "Not available" in listing.stdout
    for arguments in ("broken", "broken --help", "broken sub --option 3"):
        fails(arguments, "the command 'broken'", "cannot be loaded", reason)


def test_nothing_is_loaded_for_our_own_commands(run, fails, installed):
    installed(broken="no_such_module_anywhere:app", info="here:hello")
    fails("info missing.tsl", "missing.tsl: No such file")  # and ours is not replaced
    assert run("fit --help").exit_code == 0
    assert Plugin.loaded == []


def test_benchmark_says_how_it_is_installed(run, fails, installed):
    fails("benchmark all --jobs 2", "python -m pip install '.[bench]' ./bench")
    assert "benchmark" not in run("--help").stdout
