"""What a program may use. One place, so that a reader sees all of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Constants with one right answer; tests make them smaller."""

    cpu_s: int = 2
    """Of all unit tests or function calls of a Python program together: HumanEval's slowest
    reference program takes 0.13 s."""
    run_cpu_s: int = 3
    """Of one run of a program that reads its input; contests grant 1 to 4 s."""
    idle_s: float = 2.0
    """A program that sleeps for so long without computing is stuck; waiting for a CPU is no
    sleep."""
    total_s: float = 20.0
    """Computed or slept by one program in all its runs together; what is undecided then failed."""
    wall_s: float = 240.0
    """On the clock, for all runs of one program and its compilation. Only on a machine that has no
    CPU time to give does a program get there, so this ends in no verdict."""
    memory_mib: int = 512
    """Address space; for Java the heap."""
    java_machine_mib: int = 512
    """What the Java machine may use beyond the heap: code, classes, stacks."""
    java_stack_mib: int = 32
    stack_mib: int = 64
    """Also what one C++ thread takes of the memory."""
    output_mib: int = 4
    """What one run may print."""
    compile_cpu_s: int = 20
    compile_memory_mib: int = 1024
    compile_file_mib: int = 64
    """The largest file a compiler may write; the folder for all of them holds four."""
    threads: int = 256
    """A program may start in one run, where the kernel can ask (Linux 5.5); a Java machine starts
    about 15. Functions and unit tests in Python start none."""
    open_files: int = 32
