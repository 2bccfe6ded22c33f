from data_schemas.rows import Message, Role
from tasks.lab.recipes.mars.inputs import corrector_input, verifier_input, visible_text

ASKED = (Message(role=Role.USER, content="2 + 2?"),)


def test_a_solution_is_shown_with_its_thought_and_without_tags():
    assert "2+2=4\n4" == visible_text("<think>2+2=4</think>4")


def test_the_verifier_reads_the_problem_and_the_solution():
    system, *said = verifier_input(ASKED, "<think>2+2=5</think>5")

    assert Role.SYSTEM is system.role
    assert ["2 + 2?", "Solution: 2+2=5\n5"] == [message.content for message in said]


def test_the_corrector_reads_the_findings_without_the_line_of_the_verdict():
    findings = "<think>2+2=4</think>It is 4, not 5.\n**Correctness:** Wrong"

    *_, told = corrector_input(ASKED, "5", findings)

    assert "Solution: 5\nFindings: 2+2=4\nIt is 4, not 5." == told.content
