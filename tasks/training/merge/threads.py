"""Work on several tensors at once: one thread per core that this process may use.

numpy and torch release the interpreter's lock while they compute, and while they wait for pages of
a file. torch's own threads are off in these, so that cores are counted once.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import torch

from tasks.cores import num_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2
"""Results per thread that are made or wait at a time; more would only take memory."""


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Yield the result of every item in the order of the items; none for none.

    The first failure in that order is raised here. When the iterator ends, fails or is closed, no
    thread of it is left: work that has begun is finished first, and the rest is not begun.
    """
    num_threads, rest = num_cores(), iter(items)
    waiting: deque[Future[Result]] = deque()
    torch_threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(num_threads, "merge", torch.set_num_threads, (1,))
    try:
        while True:
            free = AHEAD * num_threads - len(waiting)
            waiting.extend(pool.submit(work, item) for item in islice(rest, free))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        # Threads that start later take over the number that was set last in any thread.
        torch.set_num_threads(torch_threads)
