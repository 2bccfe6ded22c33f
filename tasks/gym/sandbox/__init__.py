"""Execution of programs that a model wrote; no other package runs them.

A zygote (`zygote`, a bare Python without site-packages) forks new processes for every program. Unit
tests and calls in Python use two: the candidate (`candidate`), which contains only the program, and
the checker (`checker`), which contains the tests and calls the program's functions over a socket
that transfers plain data (`wire`). Programs in Python, C++ or Java that read and print use the
executor (`executor`), which compiles once, runs the program on every input and returns the output.
No test, expected value or comparison (`comparison`) is in a program's process: to pass, it has to
compute the right values.

Isolation levels are in `levels`, their implementation in `bubblewrap`, `confinement` (resource
limits, Landlock) and `calls` (system calls); limits in `limits`, their measurement in `budget`.
`toolchains`, `call_drivers` and `drivers` compile and call each language; `asserts` reads unit
tests. `runner` is the pool that verifiers use, `session` the caller's side of one zygote.

The modules that run inside the sandbox use the standard library only.
"""
