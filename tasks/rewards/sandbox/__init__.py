"""The one place that runs foreign code.

A zygote (`zygote`, a bare Python without site-packages) forks fresh processes per program. For unit
tests and calls in Python: the candidate (`candidate`), which holds nothing but the program, and the
judge (`judge`), which holds the tests and calls the program's functions over a socket; only plain
data crosses it (`wire`). For programs that read and print, in Python, C++ or Java: the workbench
(`workbench`), which compiles once, runs the program per input, and hands back what it printed. No
test, no expected value and no comparator (`comparison`) is within a program's reach: to pass, it
has to compute the right values.

How far apart all that is from the machine: `levels`; by what means: `bubblewrap`, `confinement`
(limits, Landlock), `calls` (system calls); how much a program may use: `limits`. How a language is
compiled and called: `toolchains`, `call_drivers`, `drivers`. `runner` is the pool that verifiers
use, `session` the caller's side of one zygote.

What runs inside is standard library only and imports nothing else of ours.
"""
