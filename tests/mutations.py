"""Break the library on purpose and see that the tests notice.

Each mutation is a fragment of one file of the library and a broken replacement: a wrong sign, a
dropped term, an end one too early, a race. It is made in a copy of the package, never in the
working tree, and the tests named with it are run on that copy. They have to pass without the
mutation and to fail with it. The mutations of a package are in ``tests/mutations/<package>.toml``.

    python tests/mutations.py                  # all mutations of the Python code
    python tests/mutations.py --only newton    # those with this word in their function or file
    python tests/mutations.py --compiled       # also those of the C++ core, which is rebuilt

The exit status is 1 when a mutant survives, and 2 when a mutation cannot be tried: its fragment
is not there exactly once, or the mutant cannot even be imported. Needs an installation with the
``test`` extra; ``--compiled`` also a compiler, scikit-build-core and nanobind.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SURVIVORS = ROOT / "tests" / "survivors.toml"
PACKAGE = ROOT / "src" / "tessella"
SECONDS = 600  # for the tests of one mutation; a mutant that does not end is noticed

# Development installations answer for the package before the path is looked at; not here.
SITE = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
"""


@dataclass(frozen=True)
class Mutation:
    """A broken line.

    Attributes
    ----------
    function : str
        What is broken.
    file : str
        Where it is, within the package.
    old, new : str
        The fragment, which occurs once in the file, and what takes its place.
    tests : tuple of str
        Files, below ``tests/``, of the tests that should notice.
    """

    function: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def compiled(self) -> bool:
        """Whether the core has to be built again."""
        return self.file.endswith((".cpp", ".hpp"))

    def applied(self, text: str) -> str:
        """The text of the file with the mutation."""
        if text.count(self.old) != 1:
            raise MutationError(
                f"{self.function}: {self.file} has {text.count(self.old)} times {self.old!r}, "
                "expected once."
            )
        return text.replace(self.old, self.new)


class MutationError(Exception):
    """A mutation that cannot be tried."""


def read_mutations() -> tuple[Mutation, ...]:
    """The mutations of all files, in the order of the packages."""
    entries = [
        entry
        for path in sorted((ROOT / "tests" / "mutations").glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
    ]
    return tuple(Mutation(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries)


@dataclass(frozen=True)
class Explanation:
    """Why a random mutant survives, from ``tests/survivors.toml``.

    Attributes
    ----------
    file : str
        The file within the package.
    old, new : str
        The changed lines, before and after.
    why : str
        What makes the change one without effect on results.
    """

    file: str
    old: str
    new: str
    why: str


def read_explanations() -> tuple[Explanation, ...]:
    """The explanations of survivors."""
    entries = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))["survivor"]
    return tuple(Explanation(**entry) for entry in entries)


class Copy:
    """A copy of the package that comes first on the path of the processes it runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.package = folder / "tessella"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        native = Path(importlib.import_module("tessella._core._native").__file__ or "")
        shutil.copy(native, self.package / "_core")
        (folder / "sitecustomize.py").write_text(SITE)
        inherited = [path for path in [os.environ.get("PYTHONPATH")] if path]
        self._env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), *inherited]),
            # A mutant may have the size and the second of the file before it.
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        where = self._run("-c", "import tessella; print(tessella.__file__)").stdout.strip()
        if Path(where).parent.resolve() != self.package.resolve():
            raise MutationError(f"The copy is not what is imported, but {where}.")

    def _run(self, *arguments: str, patience: float = SECONDS) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self._env, capture_output=True, text=True, timeout=patience
        )

    def tests(self) -> set[str]:
        """The names of all tests, below ``tests/``."""
        done = self._run("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests")
        lines = done.stdout.splitlines()
        return {line.removeprefix("tests/") for line in lines if line.startswith("tests/")}

    def failed_test(self, tests: tuple[str, ...], patience: float = SECONDS) -> str | None:
        """The first test that fails, or None if all pass."""
        files = [f"tests/{name}" for name in tests]
        options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=short"]
        try:
            done = self._run("-m", "pytest", *options, *files, patience=patience)
        except subprocess.TimeoutExpired:
            return "(did not end)"
        if done.returncode == 0:
            return None
        if done.returncode < 0:
            return f"(the process was ended by signal {-done.returncode})"
        found = re.search(r"^(?:FAILED|ERROR) (\S+::.+?)( - |$)", done.stdout, re.MULTILINE)
        if done.returncode != 1 or found is None:
            raise MutationError(f"no test ran:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return found[1].removeprefix("tests/")


class Core:
    """The compiled core, built from a copy of the sources; what has not changed is kept."""

    def __init__(self, folder: Path) -> None:
        self._source = folder / "source"
        self._wheels = folder / "wheels"
        self._source.mkdir()
        for name in ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self._source)
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", self._source / "src", ignore=ignore)
        self.package = self._source / "src" / "tessella"

    def build(self, target: Path) -> None:
        """Put the module where `target`, the folder of a package's core, holds one."""
        shutil.rmtree(self._wheels, ignore_errors=True)
        options = ["--no-build-isolation", "--no-deps", "--quiet", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "wheel", *options, "-w", str(self._wheels), "."]
        done = subprocess.run(command, cwd=self._source, capture_output=True, text=True)
        if done.returncode:
            raise MutationError(f"the core was not built:\n{done.stdout}{done.stderr}")
        for old in (*target.glob("_native*.so"), *target.glob("_native*.pyd")):
            old.unlink()
        with zipfile.ZipFile(next(self._wheels.glob("*.whl"))) as wheel:
            name = next(
                n for n in wheel.namelist() if "/_native." in n and n[-3:] in (".so", "pyd")
            )
            (target / Path(name).name).write_bytes(wheel.read(name))


def try_mutation(mutation: Mutation, copy: Copy, core: Core | None) -> str | None:
    """The test that notices, or None; the copy is left as it was."""
    package = copy.package if core is None else core.package
    file = package / mutation.file
    whole = file.read_text()
    file.write_text(mutation.applied(whole))
    try:
        if core is not None:
            core.build(copy.package / "_core")
        return copy.failed_test(mutation.tests)
    finally:
        file.write_text(whole)


def row(*cells: str) -> str:
    """A line of the table."""
    widths = (44, 64, 60)
    return "  ".join([*(c.ljust(w) for c, w in zip(cells, widths, strict=False)), cells[-1]])


def short(text: str, width: int = 64) -> str:
    """One line of at most some characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def main() -> int:
    """Try the mutations; see the head of this file."""
    parser = argparse.ArgumentParser(description="Break the library and see that tests notice.")
    parser.add_argument("--only", default="", help="a word of the function or the file")
    parser.add_argument("--compiled", action="store_true", help="also mutations of the C++ core")
    options = parser.parse_args()
    # Tests of Ctrl-C need it to work; a shell turns it off for what it runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    mutations = read_mutations()
    chosen = [m for m in mutations if options.only in f"{m.function} {m.file}"]
    chosen = [m for m in chosen if options.compiled or not m.compiled]
    survived, errors = [], []
    for mutation in mutations:  # all of them, so that the list cannot rot
        try:
            mutation.applied((PACKAGE / mutation.file).read_text())
        except (MutationError, OSError) as error:
            errors.append(str(error))
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder) / "copy")
        core = Core(Path(folder)) if any(m.compiled for m in chosen) else None
        if core is not None:
            core.build(copy.package / "_core")
        needed = tuple(dict.fromkeys(name for m in chosen for name in m.tests))
        failed = copy.failed_test(needed) if needed else None
        if failed is not None:
            errors.append(f"{failed} fails without any mutation.")
            chosen = []
        print(row("function", "mutation", "noticed by", "seconds"), flush=True)
        for mutation in sorted(chosen, key=lambda m: m.compiled):
            start = time.monotonic()
            try:
                test = try_mutation(mutation, copy, core if mutation.compiled else None)
            except MutationError as error:
                errors.append(str(error))
                test = "(could not be tried)"
            if test is None:
                survived.append(mutation.function)
            change = short(f"{mutation.old} -> {mutation.new.strip() or '(nothing)'}")
            seconds = f"{time.monotonic() - start:.0f}"
            print(row(mutation.function, change, test or "NOBODY", seconds), flush=True)
    for error in errors:
        print(f"error: {error}")
    print(f"{len(chosen) - len(survived)} of {len(chosen)} mutants noticed.")
    if errors:
        return 2
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
