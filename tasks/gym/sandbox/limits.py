"""Resources that a program may use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Constants, not settings; tests reduce them."""

    cpu_s: int = 2
    """CPU seconds of all unit tests or function calls of a Python program together: HumanEval's
    slowest reference program takes 0.13 s."""
    run_cpu_s: int = 3
    """CPU seconds of one run of a program that reads its input; contests grant 1 to 4 s."""
    idle_s: float = 2.0
    """Sleep without computing after which a program is stopped; waiting for a CPU is not sleep."""
    total_s: float = 20.0
    """CPU time and sleep of all runs of a program together; tests not decided by then fail."""
    wall_s: float = 240.0
    """Wall-clock time of a program's compilation and all its runs. A program reaches it only if the
    machine gives it too little CPU time, so that it gets no verdict."""
    memory_mib: int = 512
    """Address space; for Java the heap."""
    java_machine_mib: int = 512
    """Memory of the JVM beyond the heap: code, classes, stacks."""
    java_stack_mib: int = 32
    stack_mib: int = 64
    """Also the address space of one C++ thread."""
    output_mib: int = 4
    """Output of one run."""
    compile_cpu_s: int = 20
    compile_memory_mib: int = 1024
    compile_file_mib: int = 64
    """The largest file of a compiler; the folder holds four times as much."""
    threads: int = 256
    """Threads of one run, with user notification (Linux 5.5); a JVM starts about 15.
    Functions and unit tests in Python cannot start any."""
    open_files: int = 32
