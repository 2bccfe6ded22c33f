"""The response convention and the split between asked and taught."""

from tasks.curation.marketplace.items import compact, is_problem_prompt, respond


def test_a_thought_comes_before_the_answer():
    assert "<think>2*3=6</think>6" == respond("2*3=6", "6")


def test_about_three_in_ten_prompts_may_be_asked():
    share = sum(is_problem_prompt(f"prompt {number}") for number in range(4000)) / 4000

    assert 0.27 < share < 0.33


def test_json_is_written_without_spaces_and_unescaped():
    assert '{"item":"đĩa","qty":2}' == compact({"item": "đĩa", "qty": 2})
