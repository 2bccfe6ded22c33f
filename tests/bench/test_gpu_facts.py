"""The facts of a GPU machine: one that fails hides no other."""

import ast
import json
import shutil

import pytest
import torch

from tests.bench.gpu_facts import FACTS, find, main


def test_every_fact_is_said_whatever_became_of_the_one_before(capsys):
    main([], {"bad": "raise SystemExit('no kernel')", "good": "print('1.5 GB/s')"})

    assert [
        {"fact": "bad", "found": False, "said": "no kernel"},
        {"fact": "good", "found": True, "said": "1.5 GB/s"},
    ] == [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_fact_that_hangs_ends_with_its_limit():
    found = find("import time; time.sleep(1e6)", limit_s=0.5)

    assert {"found": False, "said": "not within 0 s"} == found


@pytest.mark.parametrize("code", FACTS.values(), ids=FACTS)
def test_every_program_is_one(code):
    ast.parse(code)


def test_shared_memory_is_said_without_a_gpu():
    total = shutil.disk_usage("/dev/shm").total / 2**30

    assert {"found": True, "said": f"{total:.1f} GiB in /dev/shm"} == find(FACTS["shared_memory"])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("name", ["driver", "torch", "matmul", "copies", "nccl", "triton"])
def test_a_gpu_has_them(name):
    assert find(FACTS[name])["found"]
