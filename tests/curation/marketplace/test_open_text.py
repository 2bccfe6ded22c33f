import random

from tasks.curation.marketplace.open_text import draw_open_text, draw_task


def test_an_item_is_its_task_with_the_tidy_title_as_reference():
    for level in (1, 2, 3, 4, 5):
        task = draw_task(random.Random(level), level)
        item = draw_open_text(random.Random(level), level)

        assert task.prompt == item.prompt
        assert {"reference": task.tidy.text} == item.answer
        assert item.solution == task.tidy.text != item.blunder
