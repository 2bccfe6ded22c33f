"""Two evaluations, item by item."""

import json
import math

import pytest

from tasks.errors import DataError
from tasks.evaluation.formats.score_logs import as_json, as_table, compare_scores, read_scores


def write_log(folder, task, scores, *, metric="exact_match", filters=("none",)):
    """Write a sample log of lm-evaluation-harness; one line per document and filter."""
    folder.mkdir(exist_ok=True)
    lines = [
        {
            "doc_id": number,
            "doc_hash": f"hash-{task}-{number}",
            "filter": name,
            "metrics": [metric],
            metric: score,
            "resps": [["text"]],
        }
        for name in filters
        for number, score in enumerate(scores)
    ]
    path = folder / f"samples_{task}_2026-01-01T00-00-00.000001.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_two_logs_are_paired_by_document(tmp_path):
    left = write_log(tmp_path / "left", "gsm8k", [1.0, 1.0, 0.0, 1.0])
    right = write_log(tmp_path / "right", "gsm8k", [1.0, 0.0, 1.0, 0.0, 1.0])

    (one,) = compare_scores(read_scores(str(left)), read_scores(str(right)))

    assert ("gsm8k", "exact_match", 4, 1) == (one.task, one.metric, one.items, one.unpaired)
    assert (0.75, 0.5, 0.25) == (one.left, one.right, one.difference)
    assert (2, 1, 1.0) == (one.higher, one.lower, one.p_value)
    assert one.low <= one.difference <= one.high
    assert [one.task] == [row["task"] for row in json.loads(as_json([one]))]
    assert 1 == as_table([one]).row_count


def test_every_task_metric_and_filter_of_a_folder_is_compared(tmp_path):
    for side in ("left", "right"):
        write_log(tmp_path / side, "gsm8k", [1.0], filters=("strict-match", "flexible-extract"))
        write_log(tmp_path / side, "bbh_snarks", [True, False], metric="acc")

    paired = compare_scores(*(read_scores(str(tmp_path / side)) for side in ("left", "right")))

    assert [
        ("bbh_snarks", "acc"),
        ("gsm8k", "exact_match,flexible-extract"),
        ("gsm8k", "exact_match,strict-match"),
    ] == [(one.task, one.metric) for one in paired]


def test_lists_of_verdicts_within_a_document_are_left_out(tmp_path):
    path = write_log(tmp_path, "ifeval", [[True, False]], metric="inst_level_strict_acc")

    assert {} == read_scores(str(path)).items


def test_sides_without_a_shared_item_are_refused_with_what_they_have(tmp_path):
    left = read_scores(str(write_log(tmp_path / "left", "gsm8k", [1.0])))
    right = read_scores(str(write_log(tmp_path / "right", "mgsm", [1.0])))

    with pytest.raises(DataError, match=r"left has gsm8k \(exact_match\), right mgsm"):
        compare_scores(left, right)


@pytest.mark.parametrize("line", ["[]", "{}", "nonsense", '{"doc_id": 1, "metrics": ["acc"]}'])
def test_a_line_that_is_no_sample_is_named(tmp_path, line):
    path = tmp_path / "samples_x_2026-01-01T00-00-00.jsonl"
    path.write_text(line)

    with pytest.raises(DataError, match=r"line 1 is no sample of lm-eval"):
        read_scores(str(path))


def test_two_runs_of_a_task_and_two_models_in_one_folder_are_refused(tmp_path):
    write_log(tmp_path, "gsm8k", [1.0] * 4)
    (tmp_path / "samples_gsm8k_2026-02-02T00-00-00.jsonl").write_text("")
    with pytest.raises(DataError, match=r"two runs of gsm8k: samples_gsm8k_2026-01.*2026-02"):
        read_scores(str(tmp_path))

    (tmp_path / "models").mkdir()
    for model in ("a", "b"):
        write_log(tmp_path / "models" / model, f"task_{model}", [1.0])
    with pytest.raises(DataError, match="logs of a and b, which may be two models"):
        read_scores(str(tmp_path / "models"))


@pytest.mark.parametrize(
    ("metric", "results", "direction", "mean"),
    [
        ("brier_score", None, "lower", "0.25"),
        ("word_perplexity", None, "lower", "0.25"),
        ("exact_match", None, "higher", "25.0 %"),
        ("shop_error", {"higher_is_better": {"t": {"shop_error": False}}}, "lower", "0.25"),
        ("shop_score", {"higher_is_better": {"t": {"shop_score": True}}}, "higher", "0.25"),
        ("shop_score", None, "not said", "0.25"),
    ],
)
def test_which_score_is_better_follows_from_the_metric(tmp_path, metric, results, direction, mean):
    for side, score in (("left", 0.25), ("right", 0.5)):
        path = write_log(tmp_path / side, "t", [score] * 4, metric=metric)
        if results:
            date = path.name.removeprefix("samples_t_").removesuffix(".jsonl")
            (tmp_path / side / f"results_{date}.json").write_text(json.dumps(results))

    for sides in (("left", "right"), [f"{side}/{path.name}" for side in ("left", "right")]):
        (one,) = compare_scores(*(read_scores(str(tmp_path / side)) for side in sides))

        assert (0, 4) == (one.higher, one.lower)
        cells = [next(iter(column.cells)) for column in as_table([one]).columns]
        assert (mean, direction) == (cells[4], cells[10])


def test_equal_documents_count_each_and_a_blank_line_is_none(tmp_path):
    for side, scores in (("left", [1, 0, 1]), ("right", [0, 0, 1])):
        path = write_log(tmp_path / side, "t", scores)
        path.write_text(path.read_text().replace("hash-t-0", "hash-t-1") + "\n  \n")

    (one,) = compare_scores(*(read_scores(str(tmp_path / side)) for side in ("left", "right")))

    assert (3, 0, 1, 0) == (one.items, one.unpaired, one.higher, one.lower)


def test_old_logs_are_paired_by_what_was_asked_and_not_by_number(tmp_path):
    for side, order in (("left", "ab"), ("right", "ba")):
        lines = [
            {"doc_id": number, "doc": {"question": name}, "target": "", "acc": float(name == "a")}
            for number, name in enumerate(order)
        ]
        (tmp_path / side).mkdir()
        (tmp_path / side / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))

    (one,) = compare_scores(
        *(read_scores(str(tmp_path / side / "t.jsonl")) for side in ("left", "right"))
    )

    assert (2, 0, 0) == (one.items, one.higher, one.lower)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"doc_id": 1, "metrics": ["acc"], "acc": 1}', "neither doc_hash nor doc"),
        (
            '{"doc_id": 1, "doc_hash": "a", "metrics": ["acc"], "acc": NaN}',
            "acc is nan, which is no",
        ),
    ],
)
def test_a_sample_without_identity_or_score_is_refused(tmp_path, line, reason):
    path = tmp_path / "samples_x_2026-01-01T00-00-00.jsonl"
    path.write_text(line)

    with pytest.raises(DataError, match=reason):
        read_scores(str(path))


def test_a_folder_without_an_evaluation_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"has neither samples.parquet nor samples_"):
        read_scores(str(tmp_path))


@pytest.mark.parametrize(
    "written", [str, lambda score: str(bool(score)), lambda score: f"{score:.3f}"]
)
def test_scores_that_were_written_as_texts_are_scores(tmp_path, written):
    left = write_log(tmp_path / "left", "t", [written(score) for score in (1.0, 0.0, 1.0)])
    right = write_log(tmp_path / "right", "t", [0.0, 0.0, 1.0])

    (one,) = compare_scores(read_scores(str(left)), read_scores(str(right)))

    assert (3, 1, 0) == (one.items, one.higher, one.lower)


def test_items_that_one_side_did_not_score_are_in_the_table(tmp_path):
    left = write_log(tmp_path / "left", "t", [1.0, 0.0, 1.0, None])
    right = write_log(tmp_path / "right", "t", [0.0, None, 1.0, None, 1.0])

    table = as_table(compare_scores(read_scores(str(left)), read_scores(str(right))))

    cells = {str(column.header): [*column.cells] for column in table.columns}
    assert (["2"], ["2"]) == (cells["items"], cells["unpaired"])


def test_documents_of_which_something_else_is_right_are_not_compared(tmp_path):
    paths = [write_log(tmp_path / side, "t", [1.0, 0.0]) for side in ("left", "right")]
    for place, path in enumerate(paths):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows[1]["target_hash"] = f"target-{place}"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    with pytest.raises(DataError, match="t: 1 of 2 shared documents have another target"):
        compare_scores(*(read_scores(str(path)) for path in paths))


def test_a_perplexity_is_that_of_each_document(tmp_path):
    for side, loglikelihood in (("left", -8.0), ("right", -16.0)):
        (tmp_path / side).mkdir()
        scores = {
            "word_perplexity": [loglikelihood, 4],
            "bits_per_byte": [loglikelihood, 16],
            "perplexity": loglikelihood,
        }
        lines = [{"doc_id": n, "doc": {"page": n}, "metrics": [*scores]} | scores for n in range(3)]
        log = tmp_path / side / "samples_wikitext_2026-01-01T00-00-00.000001.jsonl"
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))

    bits, last_word, words = compare_scores(
        read_scores(str(tmp_path / "left")), read_scores(str(tmp_path / "right"))
    )

    assert ("bits_per_byte", False) == (bits.metric, bits.higher_is_better)
    assert bits.left == pytest.approx(0.5 / math.log(2))
    assert (last_word.left, last_word.higher_is_better) == (pytest.approx(math.e**8), False)
    assert (words.left, words.right) == (pytest.approx(math.e**2), pytest.approx(math.e**4))


def test_a_metric_of_a_whole_task_is_named_when_nothing_else_is_there(tmp_path):
    for side in ("left", "right"):
        (tmp_path / side).mkdir()
        line = {"doc_id": 0, "doc": {"page": 0}, "metrics": ["mcc"], "mcc": [1, 0]}
        log = tmp_path / side / "samples_cola_2026-01-01T00-00-00.000001.jsonl"
        log.write_text(json.dumps(line) + "\n")

    with pytest.raises(DataError, match=r"cola \(mcc\): no score of each item"):
        compare_scores(read_scores(str(tmp_path / "left")), read_scores(str(tmp_path / "right")))
