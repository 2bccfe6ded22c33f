"""Public e-commerce sets, on hand-made rows: ChineseEcomQA, Shopping MMLU, ECInstruct."""

import pytest

from data_schemas.rows import Demonstration, Problem
from tasks.curation.adapters.mapped import read_mapped
from tasks.curation.rows import BadRow, RawRow
from tasks.formats.benchmark_file import suite_of
from tasks.formats.mapping_files import shipped_mappings
from tasks.gym import table


def asked(task: str, gold: str) -> dict[str, object]:
    return {"system_prompt": f"任务 {task}", "prompt": "***答案***", "gt": gold, "task": task}


def problem(name: str, row: dict[str, object]) -> Problem:
    suite = suite_of(name)
    assert suite is not None
    assert suite.mapping is not None
    (item,) = read_mapped(suite.mapping, RawRow("rows-1", "0" * 64, row))
    assert isinstance(item.record, Problem)
    return item.record


@pytest.mark.parametrize(
    ("name", "row", "right", "wrong"),
    [
        ("chinese_ecom_relevance", asked("RLC", "不相关"), "不相关", "相关"),
        ("chinese_ecom_relevance", asked("RLC", "相关"), "相关", "不相关"),
        ("chinese_ecom_intent", asked("ITC", "怎么办"), "怎么办", "怎么样"),
        ("chinese_ecom_review", asked("RVC", "错误"), "错误", "正确"),
        ("chinese_ecom_preference", asked("PC", "C"), "C", "D"),
        ("chinese_ecom_phrases", asked("SC", "铁丝洗碗球"), "铁丝洗碗球", "木头墩子"),
    ],
)
def test_a_task_of_chinese_ecom_qa_is_asked_with_its_examples_and_judged_by_rule(
    name, row, right, wrong
):
    one = problem(name, row)

    assert ("zh", row["system_prompt"]) == (one.language, one.messages[0].content)
    scores = [table.score_batch([one], [answer])[0].score or 0.0 for answer in (right, wrong)]
    assert scores[0] == 1.0 > scores[1]


def test_a_gold_with_its_author_s_notes_is_no_option():
    with pytest.raises(BadRow, match="unknown_option"):
        problem("chinese_ecom_relevance", asked("RLC", "功能\n\n#答案逻辑链"))


def test_options_of_shopping_mmlu_stand_in_one_cell():
    row = {"question": "Which fits?", "choices": "['a lid', \"Ann's\", 'rope', 'ink']", "answer": 1}
    one = problem("shopping_mmlu", row)

    assert "B: Ann's\nC: rope" in one.prompt_text
    assert (1.0, 0.0) == tuple(table.score_batch([one], [a])[0].score for a in ("B", "C"))


@pytest.mark.parametrize("options", ['["A: yes", "B: no"]', None])
def test_a_task_of_ecinstruct_is_a_demonstration_with_or_without_options(options):
    row = {"instruction": "Same product?", "input": "a, b", "options": options, "output": "B"}
    (item,) = read_mapped(shipped_mappings()["ecinstruct"], RawRow("rows-1", "0" * 64, row))

    assert isinstance(item.record, Demonstration)
    assert "B" in item.record.response
    assert "Same product?\na, b" in item.record.messages[-1].content
