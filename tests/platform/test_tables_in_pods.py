"""What a stage prints in a pod is lines of its log, in the one format of that."""

import logging

from tasks.platform.log_lines import FIELDS
from tasks.platform.tables import Screen, print_line, screen_table


def test_what_is_printed_in_a_pod_is_messages_of_its_log(monkeypatch, caplog, capsys):
    monkeypatch.setenv(FIELDS["execution"], "night7")
    with caplog.at_level(logging.INFO, logger="tasks"):
        print_line("Page: s3://shop/page.html")
        Screen().print(screen_table(["model", "accuracy"], [["base", "0.50"]]))

    assert "" == capsys.readouterr().out
    first, *table = [record.getMessage() for record in caplog.records]
    assert "Page: s3://shop/page.html" == first
    assert ["model", "accuracy"] == table[0].split()
    assert ["base", "0.50"] == table[-1].split()
    assert {"INFO"} == {record.levelname for record in caplog.records}


def test_elsewhere_it_is_printed(monkeypatch, capsys):
    monkeypatch.delenv(FIELDS["execution"], raising=False)
    print_line("Page: page.html")

    assert "Page: page.html\n" == capsys.readouterr().out
