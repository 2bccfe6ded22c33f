"""A host whose environment does what a turn says: raise, hang, flood, and so on."""

import os
import random
import sys
import time

from tasks.gym.environments.outside.hosting import Step, serve


def told(text):
    return Step([{"role": "tool", "content": text}])


def printed():
    sys.stdout.write("{}\n" * 3)
    sys.stdout.flush()
    return told("printed")


TRICKS = {
    "raise": lambda: int("on purpose"),
    "hang": lambda: time.sleep(1e6),
    "flood": lambda: told("x" * 10**7),
    "long": lambda: told("x" * 10**5),
    "malformed": lambda: Step([{"role": "dean", "content": "x"}]),
    "die": lambda: os._exit(3),
    "process": lambda: told(str(os.getpid())),
    "variables": lambda: told(" ".join(sorted(os.environ))),
    "dice": lambda: told(str(random.randint(1, 10**9))),
    "print": printed,
    "great": lambda: Step(done=True, reward=2.0),
    "silent": lambda: Step(done=True),
    "ends": lambda: Step(done=True, reward=1.0),
}


class Trouble:
    def step(self, turn):
        if turn.truncated:
            return Step(done=True, reward=0.25)
        return TRICKS.get(turn.text, lambda: told(f"heard {turn.text} {turn.calls}"))()

    def close(self):
        pass


class Host:
    version = "1"

    def offer(self, request):
        return [{"task": {"n": n}, "messages": []} for n in range(request["limit"])]

    def begin(self, task):
        return Trouble()


if __name__ == "__main__":
    serve(Host)
