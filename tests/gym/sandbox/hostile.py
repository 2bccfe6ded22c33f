"""Programs that try to pass without solving anything, to harm the machine, or to stay on it.

Their tests are secret(3) == 44 and secret(5) == 160, which none computes. A program that obtains
something forbidden (a second process, a file, a socket) prints 44, so that its success would show.
"""

from dataclasses import dataclass

SECRETS = {3: 44, 5: 160}
"""x**3 + x**2 + x + 5."""


@dataclass(frozen=True, slots=True)
class Hostile:
    """One program, its mode, and the reasons its verdict may have."""

    name: str
    mode: str
    language: str
    source: str
    reasons: tuple[str, ...]


def _asserts(reasons: str, programs: dict[str, str]) -> list[Hostile]:
    return [
        Hostile(name, "asserts", "python", source, tuple(reasons.split()))
        for name, source in programs.items()
    ]


def _stdio(language: str, reasons: str, programs: dict[str, str]) -> list[Hostile]:
    return [
        Hostile(name, "stdio", language, source, tuple(reasons.split()))
        for name, source in programs.items()
    ]


def _function(source: str) -> str:
    return f"import os\ndef secret(x):\n    {source}\n    return 44"


_LYING = _asserts(
    "tests_failed",
    {
        "raises SystemExit": "def secret(x): raise SystemExit(0)",
        "raises KeyboardInterrupt": "def secret(x): raise KeyboardInterrupt",
        "raises StopIteration": "def secret(x): raise StopIteration",
        "is equal to everything": (
            "class Any:\n"
            "    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n"
            "    __bool__ = lambda s: True\n    __hash__ = lambda s: 0\n"
            "def secret(x): return Any()"
        ),
        "is an int equal to everything": (
            "class Any(int):\n    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n"
            "def secret(x): return Any(7)"
        ),
        "defines the names of built-ins": "def int(x): return 44\ndef secret(x): return '44'",
        "searches memory for the tests": (
            "import gc, sys\n"
            "def secret(x):\n"
            "    found = [o for o in gc.get_objects() if isinstance(o, (str, list, dict))]\n"
            "    text = ' '.join(str(o)[:2000] for o in found)\n"
            "    frame = sys._getframe()\n"
            "    while frame: text += str(frame.f_locals)[:5000]; frame = frame.f_back\n"
            "    return 44 if 'secret(3) == ' in text else 0"
        ),
        "imports the comparator and replaces it": (
            "import sys\nchecker = sys.modules['tasks.gym.sandbox.checker']\n"
            "checker._failure = checker.same_value = lambda *a: ''\n"
            "def secret(x): return 0"
        ),
        "makes a class of its function": (
            "class secret:\n    def __new__(cls, x): return object.__new__(cls)\n"
            "    def __eq__(self, other): return True"
        ),
        "returns too much": "def secret(x): return 'x' * (50 * 2**20)",
        "returns an endless iterator": "import itertools\ndef secret(x): return itertools.count()",
        "returns itself": "def secret(x):\n    a = []\n    a.append(a)\n    return a",
        "allocates 10 GB": "def secret(x): return len(bytearray(10 * 2**30))",
        "grows a list": "def secret(x):\n    a = []\n    while True: a.append('x' * 10**6)",
        "defines nothing": "",
        "is an iterator that raises": "secret = (1 / 0 for _ in (1,))",
    },
)
_DYING = _asserts(
    "crashed timeout not_loaded tests_failed",
    {
        "exits with success": "import os\nos._exit(0)",
        "exits inside the call": "import os\ndef secret(x): os._exit(0)",
        "redefines built-ins": (
            "import builtins\n"
            "builtins.AssertionError = type('E', (), {})\nbuiltins.isinstance = lambda *a: True\n"
            "builtins.__build_class__ = None\ndef secret(x): return None"
        ),
        "patches the wire": (
            "import sys\n"
            "wire = sys.modules['tasks.gym.sandbox.wire']\n"
            "wire.encode = lambda *a: {'passed': True}\nwire.send = lambda *a: None\n"
            "def secret(x): return 9"
        ),
        "writes reports to every descriptor": (
            "import os, json\n"
            "for message in ({'passed': True, 'why': ''}, {'end': 'done'}):\n"
            "    payload = json.dumps(message).encode()\n"
            "    for handle in range(64):\n"
            "        try: os.write(handle, len(payload).to_bytes(4, 'big') + payload)\n"
            "        except OSError: pass\n"
            "def secret(x): return 0"
        ),
        "loops for ever": "while True: pass",
        "loops in the call": "def secret(x):\n    while True: pass",
        "sleeps": "import time\ndef secret(x): time.sleep(600)",
        "waits for itself": (
            "import threading\na = threading.Lock()\ndef secret(x): a.acquire(); a.acquire()"
        ),
        "prints without end": "def secret(x):\n    while True: print('spam' * 1000)",
        "recurses": "import sys\nsys.setrecursionlimit(10**9)\ndef secret(x): return secret(x)",
        "crashes the interpreter": "import ctypes\ndef secret(x): ctypes.string_at(0)",
        "does not parse": "def secret(x: return 44",
    },
)
_REACHING = _asserts(
    "tests_failed",
    {
        "forks": _function("os.fork()"),
        "starts a thread": _function("import threading; threading.Thread(target=print).start()"),
        "starts a program": _function("import subprocess; subprocess.run(['/bin/true'])"),
        "kills its parent": _function("os.kill(os.getppid(), 9)"),
        "kills everybody": _function("os.kill(-1, 9)"),
        "signals through a descriptor": _function(
            "import fcntl; fcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())"
        ),
        "opens a socket": _function("import socket; socket.socket()"),
        "resolves a name": _function("import socket; socket.create_connection(('1.1.1.1', 53), 1)"),
        "writes a file": _function("open('left', 'w')"),
        "makes a folder": _function("os.mkdir('left')"),
        "links to a file outside": _function("os.symlink('/etc/passwd', 'left')"),
        "deletes": _function("os.unlink('/tmp/x')"),
        "traces its parent": _function(
            "import ctypes; assert not ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)"
        ),
        "raises its limits": _function(
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))"
        ),
        "reads the users of the host": _function("open('/etc/passwd').read()"),
        "reads /proc": _function("open('/proc/self/environ').read()"),
        "reads the checker's memory": _function("open(f'/proc/{os.getppid()}/mem').read(1)"),
        "reads the tests": _function(f"open({__file__!r}).read()"),
    },
)
_SHELL = _stdio(
    "python",
    "tests_failed crashed timeout too_much_output",
    {
        "forks for ever": "import os\nwhile True: os.fork()\n",
        "leaves a daemon": (
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
            "    if os.fork() == 0: time.sleep(60)\nprint(44)"
        ),
        "starts threads for ever": (
            "import threading, time\n"
            "while True: threading.Thread(target=time.sleep, args=(9,)).start()"
        ),
        "prints for ever": "while True: print('spam' * 1000)",
        "waits for input that never comes": "import time\ntime.sleep(600)",
        "closes its output and stays": "import os\nos.close(1); os.close(2)\nwhile True: pass",
        "becomes a shell": "import os\nos.execv('/bin/sh', ['sh', '-c', 'sleep 9 & echo 44'])",
        "writes into its folder": "open('program.py', 'w').write('print(44)')\nprint(44)",
        "reads the answers next to it": (
            "import os\nfound = [n for n in os.listdir('.') if n != 'program.py']\n"
            "print(44 if any('44' in open(n).read() for n in found) else 0)"
        ),
        "guesses both answers": "print(44)\nprint(160)",
        "exits with an error after the answer": "print({3: 44, 5: 160}[int(input())])\nexit(3)",
    },
)
_CPP_INCLUDES = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
"""


def _main(body: str) -> str:
    return f"{_CPP_INCLUDES}int main() {{ {body} return 0; }}\n"


_CPP = [
    *_stdio(
        "cpp",
        "tests_failed crashed timeout",
        {
            "forks for ever": _main('for (;;) if (fork() >= 0) puts("44");'),
            "leaves a daemon": _main('if (daemon(0, 0) == 0 || vfork() >= 0) puts("44");'),
            "kills everybody": _main('if (!kill(-1, 9) || !kill(getppid(), 9)) puts("44");'),
            "opens a socket": _main('if (socket(AF_INET, SOCK_STREAM, 0) >= 0) puts("44");'),
            "reads the users of the host": _main(
                'if (open("/etc/passwd", O_RDONLY) >= 0) puts("44");'
            ),
            "reads its own /proc": _main(
                'if (open("/proc/self/status", O_RDONLY) >= 0) puts("44");'
            ),
            "leaves a file": _main(
                'if (creat("left", 0600) >= 0 || !symlink("/", "link")) puts("44");'
            ),
            "allocates 10 GB": _main(
                'if (char* p = (char*)malloc(10ul << 30)) { memset(p, 1, 10ul << 30); puts("44"); }'
            ),
            "maps 10 GB that others see": _main(
                "if (mmap(0, 10ul << 30, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)"
                ' puts("44");'
            ),
            "loops for ever": _main("for (volatile int i = 0;; ++i) {}"),
            "calls itself for ever": (
                f"{_CPP_INCLUDES}int f(volatile int x) {{ return f(x + 1) + f(x); }}\n"
                "int main() { return f(0); }\n"
            ),
            "prints without a newline and dies": _main('puts("44"); fflush(stdout); abort();'),
        },
    ),
    *_stdio("cpp", "too_much_output", {"prints for ever": _main('for (;;) puts("spam");')}),
    *_stdio(
        "cpp",
        "not_compiled",
        {
            "includes an endless file": '#include "/dev/zero"\nint main() {}\n',
            "includes the users of the host": '#include "/etc/passwd"\nint main() {}\n',
            "makes the compiler recurse": (
                "template <int N> struct A { A<N + 1> a; A<N + 2> b; };\nA<0> a;\nint main() {}\n"
            ),
            "writes a program of 8 GB": "char big[1ul << 33] = {1};\nint main() {}\n",
        },
    ),
    Hostile(
        "exits before the harness",
        "harness",
        "cpp",
        f'{_CPP_INCLUDES}struct Early {{ Early() {{ puts("44?"); exit(0); }} }} early;\n'
        "int secret(int x) { return 0; }\n",
        ("tests_failed",),
    ),
]


def _java(body: str) -> str:
    return (
        "import java.nio.file.*;\nimport java.util.*;\npublic class Main {\n"
        f"public static void main(String[] names) throws Exception {{ {body} }} }}\n"
    )


_JAVA = [
    *_stdio(
        "java",
        "tests_failed crashed timeout",
        {
            "starts a program": _java(
                'new ProcessBuilder("/bin/true").start(); System.out.println(44);'
            ),
            "opens a socket": _java('new java.net.Socket("1.1.1.1", 53); System.out.println(44);'),
            "reads the users of the host": _java(
                'Files.readString(Path.of("/etc/passwd")); System.out.println(44);'
            ),
            "leaves a file": _java(
                'Files.writeString(Path.of("left"), "x"); System.out.println(44);'
            ),
            "fills the heap": _java(
                "var all = new ArrayList<byte[]>(); for (;;) all.add(new byte[1 << 24]);"
            ),
            "allocates outside the heap": _java(
                "var all = new ArrayList<Object>();"
                " for (;;) all.add(java.nio.ByteBuffer.allocateDirect(1 << 26));"
            ),
            "waits for itself": _java("Thread.currentThread().join();"),
        },
    ),
    Hostile(
        "exits before the harness",
        "harness",
        "java",
        'public class Main { static { System.out.println("passed"); System.exit(0); }\n'
        "static int secret(int x) { return 0; } }\n",
        ("tests_failed",),
    ),
]
HOSTILE = [*_LYING, *_DYING, *_REACHING, *_SHELL, *_CPP, *_JAVA]
HARNESSES = {
    "cpp": "#include <iostream>\nint main() { int x; std::cin >> x; std::cout << secret(x); }\n",
    "java": (
        "class Harness { public static void main(String[] names) {\n"
        "int x = new java.util.Scanner(System.in).nextInt();\n"
        "System.out.println(Main.secret(x)); } }\n"
    ),
}
SOLUTIONS = {
    "python": "x = int(input())\nprint(x**3 + x**2 + x + 5)\n",
    "cpp": (
        "#include <iostream>\n"
        "int main() { int x; std::cin >> x; std::cout << x * x * x + x * x + x + 5; }\n"
    ),
    "java": _java(
        "int x = new Scanner(System.in).nextInt(); System.out.println(x * x * x + x * x + x + 5);"
    ),
}
