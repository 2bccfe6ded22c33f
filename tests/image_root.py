"""Carry out a Dockerfile without Docker: its lines, in a Debian root made by mmdebstrap.

It needs root and Debian's packages. Python is Debian's 3.11 in place of the one of the official
image, which is the one difference. Variables of pip and uv, and the folders of packages and
certificates in EACHPROMPT_IMAGE_FOLDERS (path:path), are those of this machine.
"""

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import run_process

ROOT = Path(__file__).parents[1]
BASE = re.compile(r"python:3\.11\.\d+-slim-bookworm")
DEBIAN = "python3,python3-dev,python3-pip,python-is-python3,ca-certificates"
OURS = re.compile(r"PIP_|UV_|SSL_|REQUESTS_|CURL_|https?_proxy|HTTPS?_PROXY")
"""Variables of this machine that say where packages come from."""


def make_base(folder: Path) -> Path:
    """Make the root that every image starts from."""
    command = ["mmdebstrap", "--quiet", "--variant=apt", f"--include={DEBIAN}", "bookworm"]
    subprocess.run([*command, folder], check=True)
    shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
    return folder


@dataclass
class Image:
    """A root, and what the next line of the Dockerfile runs with."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0"

    def build(self, dockerfile: Path, *, dry: bool = False) -> None:
        """Carry out every line.

        Args:
            dry: packages are resolved for this platform, not installed, and nothing is compiled.
        """
        text = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", dockerfile.read_text()))
        for line in filter(None, map(str.strip, text.splitlines())):
            word, rest = line.split(maxsplit=1)
            match word:
                case "FROM":
                    assert BASE.fullmatch(self._filled(rest))
                case "ARG":
                    name, default = rest.split("=", 1)
                    self.variables[name] = os.environ.get(name, default)
                case "ENV":
                    given = shlex.split(self._filled(rest))
                    self.variables |= dict(one.split("=", 1) for one in given)
                case "WORKDIR":
                    self.folder = rest
                    self._host(rest).mkdir(parents=True, exist_ok=True)
                case "USER":
                    self.user = rest
                case "COPY":
                    self._copy(shlex.split(rest))
                case "RUN":
                    self.run(_dry(rest) if dry else rest)
                case _:
                    assert word in ("CMD", "LABEL"), line

    def run(self, command: str, timeout_s: float = 3600.0) -> str:
        """Run a shell command as the image's user; return what it prints."""
        known = {name: text for name, text in os.environ.items() if OURS.match(name)}
        variables = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            # Debian's Python belongs to Debian; the official image's does not.
            "PIP_BREAK_SYSTEM_PACKAGES": "1",
            "UV_BREAK_SYSTEM_PACKAGES": "1",
            "UV_SYSTEM_PYTHON": "1",
            **known,
            **self.variables,
        }
        folders = filter(None, os.environ.get("EACHPROMPT_IMAGE_FOLDERS", "").split(":"))
        mounts = [f"mount --rbind {place} {self.root}{place}" for place in ("/dev", *folders)]
        for place in ("/proc", "/dev", *os.environ.get("EACHPROMPT_IMAGE_FOLDERS", "").split(":")):
            self._host(place).mkdir(parents=True, exist_ok=True)
        inside = ["chroot", f"--userspec={self.user}:{self.user}", str(self.root)]
        inside += ["env", "-i", *(f"{name}={text}" for name, text in variables.items())]
        inside += ["sh", "-c", f"cd {self.folder} && {command}"]
        script = " && ".join(
            [f"mount -t proc proc {self.root}/proc", *mounts, f"exec {shlex.join(inside)}"]
        )
        done = run_process(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
            timeout=timeout_s,
        )
        return done.stdout

    def _filled(self, text: str) -> str:
        """As Docker: ${NAME} is what an argument or a variable says."""
        return re.sub(r"\$\{(\w+)\}", lambda match: self.variables.get(match[1], ""), text)

    def _copy(self, places: list[str]) -> None:
        """As Docker: of a folder its content, of a file the file."""
        *sources, target = places
        goal = self._host(target if target.startswith("/") else f"{self.folder}/{target}")
        for source in (ROOT / one for one in sources):
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, goal, dirs_exist_ok=True, ignore=ignored)
            else:
                goal.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, goal / source.name)

    def _host(self, place: str) -> Path:
        return self.root / place.lstrip("/")


def _dry(command: str) -> str:
    """Resolve what a command would install with uv; leave out what is then compiled with it."""
    parts = [part for part in command.split("&&") if "--no-build-isolation" not in part]
    return "&&".join(parts).replace("uv pip install --system", "uv pip install --system --dry-run")
