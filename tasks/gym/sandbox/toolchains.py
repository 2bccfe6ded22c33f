"""Compilation and execution of programs in Python, C++ and Java: files, commands, flags.

A harness is a source with the entry point that calls the program's functions; with a harness, a C++
program's own `main` is renamed and a Java program's is not called. The flags suit short runs with
little memory.
"""

import functools
import os
import re
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tasks.errors import JudgeError
from tasks.gym.sandbox.limits import Limits

_DRIVERS = Path(__file__).parent / "drivers"
_CPP_FLAGS = ("-std=gnu++17", "-O2", "-w", "-pipe", "-fmax-errors=3")
_JAVA_FLAGS = (
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto"),
    *("-XX:ReservedCodeCacheSize=64m", "-XX:CompressedClassSpaceSize=64m"),
    *("-XX:-CreateCoredumpOnCrash", "-XX:+SuppressFatalErrorMessage"),
)
_PUBLIC = re.compile(
    r"^[ \t]*public[ \t]+(?:(?:final|abstract|sealed|strictfp)[ \t]+)*"
    r"(?:class|interface|enum|record)[ \t]+(\w+)",
    re.MULTILINE,
)
_CLASSES = re.compile(r"\b(?:class|interface|enum|record)[ \t]+([A-Za-z_]\w*)")
_PACKAGE = re.compile(r"^\s*package\s+[\w.]+\s*;", re.MULTILINE)


class Language(StrEnum):
    """A programming language."""

    PYTHON = "python"
    CPP = "cpp"
    JAVA = "java"


@dataclass(frozen=True, slots=True)
class Build:
    """The files and commands of one program."""

    language: Language
    files: dict[str, str]
    compile: tuple[str, ...]
    """Empty: nothing to compile."""
    run: tuple[str, ...]
    environment: dict[str, str]


def build(language: Language, source: str, harness: str = "", *, limits: Limits) -> Build:
    """Prepare a program, with a harness if it contains the entry point.

    Raises:
        JudgeError: its compiler is not installed; the message says how to get it.
    """
    match language:
        case Language.PYTHON:
            return _python(source, harness)
        case Language.CPP:
            return _cpp(source, harness)
        case Language.JAVA:
            return _java(source, harness, limits)


def driver(name: str) -> str:
    """Return the text of a file in `drivers`."""
    return (_DRIVERS / name).read_text()


def classes(source: str) -> list[str]:
    """Return the names of a Java program's classes, in order."""
    return list(dict.fromkeys(_CLASSES.findall(source)))


def readable_paths() -> list[str]:
    """Return the existing paths that programs and compilers have to read."""
    python = Path(sys.executable).resolve()
    paths = [
        *("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/include", "/usr/bin"),
        *("/lib", "/lib64", "/bin", "/usr/share/zoneinfo", "/etc/ld.so.cache"),
        *(str(path) for path in Path("/etc").glob("java-*")),
        *("/dev/null", "/dev/zero", "/dev/urandom"),
        str(python),
        sysconfig.get_path("stdlib"),
        *(str(path) for path in (python.parents[1] / "lib").glob("libpython*")),
        *([str(_jdk())] if _jdk() else []),
    ]
    return [path for path in dict.fromkeys(paths) if Path(path).exists()]


def masked_paths() -> list[str]:
    """Return folders below `readable_paths` that belong to this project's environment."""
    packages = Path(sysconfig.get_path("stdlib")) / "site-packages"
    return [str(packages)] if packages.exists() else []


_PROGRAM = "program.py"
_START = (
    # -S leaves out what every ordinary Python has. The module site itself takes 2 ms to import.
    "import builtins, sys; from _sitebuiltins import Quitter as Q, _Helper as H; "
    "builtins.exit, builtins.quit, builtins.help = Q('exit', 'EOF'), Q('quit', 'EOF'), H(); "
    f"__file__ = sys.argv[0] = {_PROGRAM!r}; "
    # The frame of this line and `exec` count as deep as two calls.
    "sys.setrecursionlimit(sys.getrecursionlimit() + 2); del builtins, sys, Q, H; "
    "exec(compile(open(__file__, 'rb').read(), __file__, 'exec'))"
)
"""Runs a program as a file is run, with the builtins of the module site."""


def python_command() -> tuple[str, ...]:
    """Return the bare interpreter: no user site, no script folder, no site-packages.

    Like -I -S, but PYTHONHASHSEED is read, so that the order of sets is reproducible. Integers may
    have any number of digits, as in the Pythons of contests; the time to convert them is limited.
    """
    path = os.path.realpath(sys.executable)
    return (path, "-s", "-S", "-P", "-B", "-X", "int_max_str_digits=0")


def _python(source: str, harness: str) -> Build:
    text = f"{source}\n\n{harness}" if harness else source
    run = (*python_command(), "-c", _START)
    return Build(Language.PYTHON, {_PROGRAM: text}, (), run, {"PYTHONHASHSEED": "0"})


def _cpp(source: str, harness: str) -> Build:
    compiler = _compiler("g++", "apt-get install --yes g++ libc6-dev")
    files, first = {"program.cpp": source}, "program.cpp"
    if harness:
        renamed = '#define main program_main\n#include "program.cpp"\n#undef main\n'
        files["harness.cpp"], first = renamed + harness, "harness.cpp"
        files["call.hpp"] = driver("call.hpp")
    command = (compiler, *_CPP_FLAGS, "-o", "program", first)
    return Build(Language.CPP, files, command, ("./program",), {"PATH": "/usr/bin:/bin"})


def _java(source: str, harness: str, limits: Limits) -> Build:
    compiler = os.path.realpath(_compiler("javac", "apt-get install --yes default-jdk-headless"))
    home = Path(compiler).parents[1]
    source = _PACKAGE.sub("", source, count=1)
    public = _PUBLIC.search(source)
    name = f"{public.group(1) if public else 'Program'}.java"
    files = {name: source, "EachPromptStart.java": driver("EachPromptStart.java")}
    if harness:
        files["Harness.java"] = harness
    heap = ("-Xms8m", f"-Xmx{limits.memory_mib}m")
    command = (
        *(compiler, f"-J-Xmx{limits.compile_memory_mib // 2}m"),
        *(f"-J{flag}" for flag in _JAVA_FLAGS),
        *("-proc:none", "-nowarn", "-encoding", "UTF-8", "-d", ".", *files),
    )
    mains = ["Harness"] if harness else classes(source)
    run = (
        *(str(home / "bin" / "java"), *heap, f"-Xss{limits.java_stack_mib}m", *_JAVA_FLAGS),
        *("-Dfile.encoding=UTF-8", "-cp", ".", "EachPromptStart", *mains),
    )
    # Without /proc the JVM does not find its libraries.
    libraries = f"{home}/lib:{home}/lib/server"
    return Build(Language.JAVA, files, command, run, {"LD_LIBRARY_PATH": libraries})


@functools.cache
def _jdk() -> Path | None:
    compiler = shutil.which("javac")
    return Path(os.path.realpath(compiler)).parents[1] if compiler else None


def _compiler(program: str, remedy: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise JudgeError(f"{program} is not installed here. Run: {remedy}")
    return path
