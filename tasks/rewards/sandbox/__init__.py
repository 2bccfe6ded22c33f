"""The one place that runs foreign code.

A zygote (`zygote`, a bare Python without site-packages) forks two fresh processes per program: the
candidate (`candidate`), which holds nothing but the program, and the judge (`judge`), which holds
the tests and calls the program's functions over a socket. Only plain data crosses it (`wire`), so
no test, no expected value and no comparator is within the program's reach: to pass, it has to
compute the right values. Both are confined (`confinement`): resource limits, Landlock, a list of
allowed system calls; the zygote as a whole runs under bubblewrap where that is installed. `runner`
is the caller's side.

All but `runner` is standard library only and imports nothing else of ours.
"""
