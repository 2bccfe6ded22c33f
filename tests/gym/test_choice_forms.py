"""Forms in which instruct models answer a choice, in the languages of the market."""

# ruff: noqa: E501, RUF001 - texts as people type them
import random

import pytest

from tasks.gym.table import score_batch
from tests.tables import for_each

GOLD = {"correct": ["B"], "others": [["A"], ["C"]]}
RIGHT = {
    "en": [
        "Ans: B",
        "Final: B",
        "Thus, B.",
        "Hence, (B).",
        "We conclude that B is right.",
        "The answer has to be B.",
        "The answer to the question is option B.",
        "The right answer here is clearly B.",
        "**Final Answer**\n\nB",
        "### Answer\n**B**",
        "## Correct Option:\n\n(B)",
        "The answer is B. A is wrong because it is red, and C describes a plant.",
        "The correct answer is B) blue.\n\nExplanation: Option A refers to the sunset, while option C refers to grass.",
        "Answer: B\n\n- A: the sunset is red.\n- B: the sky is blue.\n- C: grass is green.",
        '{"reasoning": "A is red, C is green", "answer": "B"}',
        '```json\n{"answer": "B", "reason": "Unlike A and C, the sky is blue."}\n```',
        "It is not A but B.",
        "The answer is not A, but B.",
    ],
    "zh": [
        "答：B",
        "A、C都不正确，所以选B。",
        "**最终答案**\n\nB",
        "### 答案\n**B**",
        "正确答案是B。A描述的是日落，C描述的是草。",
        "答案：B\n\n解析：A项是红色，C项是绿色，都不符合题意。",
        '{"理由": "A是红色", "答案": "B"}',
        '{"reason": "A是红色，C是绿色", "answer": "B"}',
        "不是A而是B。",
        "答案不是A，而是B。",
    ],
    "id": [
        "Jawab: B",
        "Jwb: B",
        "Jawabannya B dan alasannya jelas.",
        "**Jawaban Akhir**\n\nB",
        "### Jawaban:\nB",
        "Jawaban yang benar adalah B. A menggambarkan matahari terbenam, sedangkan C menggambarkan rumput.",
        "Jawaban: B\n\nPenjelasan: Pilihan A salah karena merah, pilihan C hijau.",
        '{"alasan": "A merah", "jawaban": "B"}',
        '{"reason": "A merah, C hijau", "answer": "B"}',
        "Bukan A melainkan B.",
        "Jawabannya bukan A, melainkan B.",
    ],
    "ms": [
        "**Jawapan Akhir**\n\nB",
        "### Jawapan:\nB",
        "Jawapan yang betul ialah B. A menggambarkan matahari terbenam manakala C menggambarkan rumput.",
        "Jawapan: B\n\nPenjelasan: Pilihan A salah kerana merah, pilihan C hijau.",
        '{"sebab": "A merah", "jawapan": "B"}',
        "Bukan A tetapi B.",
        "Jawapannya bukan A, tetapi B.",
    ],
    "th": [
        "**คำตอบสุดท้าย**\n\nB",
        "### คำตอบ\n**B**",
        "คำตอบที่ถูกต้องคือ B เพราะ A เป็นสีแดง และ C เป็นสีเขียว",
        "คำตอบ: B\n\nคำอธิบาย: ข้อ A เป็นสีแดง ข้อ C เป็นสีเขียว",
        '{"เหตุผล": "A เป็นสีแดง", "คำตอบ": "B"}',
        "ไม่ใช่ A แต่เป็น B",
        "คำตอบไม่ใช่ A แต่เป็น B",
    ],
    "vi": [
        "ĐA: B",
        "**Đáp án cuối cùng**\n\nB",
        "### Đáp án:\nB",
        "Đáp án đúng là B. A mô tả hoàng hôn, còn C mô tả cỏ.",
        "Đáp án: B\n\nGiải thích: Phương án A sai vì màu đỏ, phương án C màu xanh lá.",
        '{"lý do": "A màu đỏ", "đáp án": "B"}',
        "Không phải A mà là B.",
        "Đáp án không phải A, mà là B.",
    ],
    "pt": [
        "Resp.: B",
        "A resposta é B e a explicação é simples.",
        "**Resposta Final**\n\nB",
        "### Resposta:\nB",
        "A resposta correta é B. A opção A descreve o pôr do sol, enquanto a opção C descreve a grama.",
        "Resposta: B\n\nExplicação: A alternativa A está errada porque é vermelha; a C é verde.",
        '{"motivo": "A é vermelha", "resposta": "B"}',
        "Não é A, mas B.",
        "A resposta não é A, mas sim B.",
    ],
    "es": [
        "Rpta: B",
        "Rta.: B",
        "**Respuesta Final**\n\nB",
        "### Respuesta:\nB",
        "La respuesta correcta es B. La opción A describe el atardecer, mientras que la opción C describe el césped.",
        "Respuesta: B\n\nExplicación: La opción A es incorrecta porque es roja; la C es verde.",
        '{"motivo": "A es roja", "respuesta": "B"}',
        "No es A, sino B.",
        "La respuesta no es A, sino B.",
    ],
    "tl": [
        "**Sagot**\n\nB",
        "Ang tamang sagot ay B. Inilalarawan ng A ang paglubog ng araw, at ng C ang damo.",
        "Hindi A kundi B.",
    ],
    "fr": [
        "**Réponse finale**\n\nB",
        "La bonne réponse est B. L'option A décrit le coucher du soleil, tandis que C décrit l'herbe.",
        "Ce n'est pas A, mais B.",
    ],
    "de": [
        "**Antwort**\n\nB",
        "Die richtige Antwort ist B. Option A beschreibt den Sonnenuntergang, C das Gras.",
        "Nicht A, sondern B.",
    ],
}
WRONG = {
    "en": [
        "Ans: A or B",
        "Thus, B. Or A.",
        "We cannot conclude that B is right.",
        "Hence, B is wrong.",
        "The answer is B. But A is also correct.",
        "The answer is B, or maybe A.",
        "The answer is not B.",
        "**Answer**\n\nA",
        "The answer is B. Wait, actually A is right.",
        '{"answer": ["A", "B"]}',
        "It is not B but A.",
        '{"reason": "B is blue", "answer": "A"}',
    ],
    "zh": [
        "B、A都对",
        "B和A均可",
        "A、C都不对，选A",
        "答案是B。但A也正确。",
        "答案是B或A。",
        "答案不是B。",
        "不是B而是A。",
        '{"理由":"B是蓝色","答案":"A"}',
    ],
    "id": [
        "B dan A benar.",
        "Jawabannya adalah B. Tetapi A juga benar.",
        "Jawabannya B atau A.",
        "Jawabannya bukan B.",
        "Bukan B melainkan A.",
    ],
    "ms": [
        "B dan A betul.",
        "Jawapannya ialah B. Tetapi A juga betul.",
        "Jawapannya B atau A.",
        "Jawapannya bukan B.",
        "Bukan B tetapi A.",
    ],
    "th": [
        "คำตอบคือ B แต่ A ก็ถูกเช่นกัน",
        "คำตอบคือ B หรือ A",
        "คำตอบไม่ใช่ B",
        "ไม่ใช่ B แต่เป็น A",
    ],
    "vi": [
        "B và A đều đúng.",
        "Đáp án là B. Nhưng A cũng đúng.",
        "Đáp án là B hoặc A.",
        "Đáp án không phải là B.",
        "Không phải B mà là A.",
    ],
    "pt": [
        "B e A estão corretas.",
        "A resposta é B. Mas A também está correta.",
        "A resposta é B ou A.",
        "A resposta não é B.",
        "Não é B, mas A.",
    ],
    "es": [
        "B y A son correctas.",
        "La respuesta es B. Pero A también es correcta.",
        "La respuesta es B o A.",
        "La respuesta no es B.",
        "No es B, sino A.",
    ],
}
UNREAD = {
    "ja": [
        "答えはBです。",
        "**答え**\n\nBです",
        "Bではなく、Aです。",
        "AではなくBです。",
    ],
    "ko": [
        "정답은 B입니다.",
        "**정답**\n\nB 입니다",
        "B가 아니라 A입니다.",
    ],
}

NAMED = {"correct": ["B", "blue"], "others": [["A", "red"], ["C", "green"]]}
"""Options with their wording."""
RIGHT_NAMED = {
    "en": [
        "B. Blue\n\nExplanation: Short waves scatter. Red (A) is seen at dusk and green (C) in leaves.",
        "A: the sunset. B: the sky. C: grass. So the answer is B.",
        "**B) blue**\n\nA) red – wrong, this is dusk.\nC) green – wrong, this is grass.",
        "Option B is correct. Option A is incorrect as it is red.",
        "The answer is (B) blue, not (A) red.",
        "B\n\nReason: A and C are colours of other things.",
        '{"thoughts": "maybe A? no", "final_answer": "B"}',
        "<answer>B</answer>",
        "Answer: (B)\nConfidence: high",
        "# Answer\n\n> B",
    ],
    "zh": [
        "选B。A、C都不对。",
        "我选择B，因为A是红色的，C是绿色的。",
        "【答案】B\n【解析】A项错误，C项错误。",
        "**答案**：\n\n**B**",
    ],
    "id": [
        "Pilihan B benar. Pilihan A salah.",
        "B. Alasan: A dan C tidak sesuai.",
        "**Jawaban yang benar**\n\nB",
    ],
    "ms": [
        "Saya pilih B kerana A berwarna merah.",
    ],
    "th": [
        "ตอบข้อ B เพราะข้อ A และ C ไม่ถูกต้อง",
        "เฉลย B\nข้อ A ผิดเพราะเป็นสีแดง",
        "**คำตอบที่ถูกต้อง**\n\nข้อ B",
    ],
    "vi": [
        "Chọn B. A và C đều sai.",
        "B là đáp án đúng vì A màu đỏ.",
        "**Câu trả lời:**\n\nB",
    ],
    "pt": [
        "Letra B. As alternativas A e C estão incorretas.",
        "Alternativa correta: B\n\nJustificativa: a A é vermelha.",
    ],
    "es": [
        "Opción B. Las opciones A y C son incorrectas.",
        "La opción correcta es la B, ya que la A es roja.",
    ],
}
WRONG_NAMED = {
    "en": [
        "B. A is equally valid.",
        "The answer is B. C would also be acceptable.",
        "B and C",
        "B\nA, C and D",
        "Answer: B\n\nA: correct too.\nB: correct.\nC: wrong.",
        "B, although C is right as well",
        "It could be B.",
        "not B",
        "Anything but B.",
    ],
    "zh": [
        "选B，C也可以。",
        "B\nA、C、D",
        "答案是B，不过C也对。",
        "B或C都可以",
        "可能是B",
    ],
    "id": [
        "Jawabannya B, tapi C juga bisa.",
        "B dan C benar.",
        "Mungkin B",
    ],
    "ms": [
        "Jawapannya B, C juga betul.",
    ],
    "th": [
        "คำตอบคือ B หรือ C ก็ได้",
        "ข้อ B และ C ถูกทั้งคู่",
        "น่าจะเป็น B",
    ],
    "vi": [
        "Đáp án là B, nhưng C cũng có thể đúng.",
        "B và C đều đúng.",
        "Có lẽ là B",
    ],
    "pt": [
        "A resposta é B, mas C também serve.",
        "B e C estão corretas.",
        "Talvez B",
    ],
    "es": [
        "La respuesta es B, aunque C también vale.",
        "B y C son correctas.",
        "Quizás B",
    ],
}

POSSIBLE = {
    "en": [
        "B while A could be right too",
        "The answer is B and A could also be right",
        "B, then again A could be right",
        "B though A would also fit",
        "B while I think A could be right too",
        "B since A could be right too",
        "A is wrong; B may be right",
        "B and A both fit.",
        "B, or A if it is dusk.",
        "B - but I cannot rule out A.",
        "B, though I am torn between B and A.",
        "B. Although A looks right too, it is dusk.",
    ],
    "zh": ["B，A可能也对", "答案是B，A或许也对", "B可能是对的"],
    "id": ["B sedangkan A bisa juga benar", "Jawabannya B, A bisa jadi benar"],
    "ms": ["B manakala A boleh juga betul", "B walaupun A boleh jadi betul"],
    "th": ["B ในขณะที่ A อาจถูกด้วย", "คำตอบคือ B แต่ A อาจถูกเหมือนกัน"],
    "vi": ["B trong khi A có thể đúng", "B, A có lẽ cũng đúng"],
    "pt": ["B enquanto A pode estar certa também", "A resposta é B, embora A possa estar correta"],
    "es": ["B, aunque A puede ser correcta", "B si bien A podría ser correcta"],
    "tl": ["Ang sagot ay B, pero A ay pwede ring tama", "B habang A ay maaaring tama rin"],
    "fr": ["La réponse est B, alors que A pourrait être correcte"],
    "de": ["B, während A auch richtig sein könnte"],
    "it": ["La risposta è B, anche se A potrebbe essere corretta"],
}
"""A second option, or the right one, is said to be possible: "a" is a letter there, no article."""
DISMISSED = {
    "en": [
        "B while A is wrong",
        "B whereas A is red",
        "B even though A would seem simpler",
        "B while A could not be right",
        "The answer is B, while A might seem plausible.",
        "Answer: B. A is red; C is green.",
        "Answer: B. (A) is red; (C) is green.",
        "A and C are wrong, so B",
        "Options A and C are wrong. B.",
        "Answer: B \u2014 not A or C.",
        "(B)\n\nA is incorrect: red.\nC is incorrect: green.",
        "It must be B as A and C are excluded.",
        "B. Although A looks right at first, it is about dusk.",
    ],
    "zh": ["A、C都不对，选B", "A,C都不对,选B", "A不对，C也不对，选B", "B，而A是错的"],
    "id": [
        "A, C salah; jawabannya B",
        "A dan C salah, pilih B",
        "B sedangkan A salah",
        "B. Meskipun A terlihat benar, itu tentang senja.",
    ],
    "th": ["A และ C ผิด ตอบ B", "B ส่วน A ผิด", "คำตอบคือ B ไม่ใช่ A"],
    "vi": ["A và C sai, chọn B", "B trong khi A sai"],
    "pt": ["A e C estão erradas, escolho B", "B, enquanto A está errada"],
    "es": ["A y C son incorrectas, elijo B", "B, mientras que A es incorrecta"],
    "de": ["B, obwohl A verlockend ist"],
}
"""The other options are told apart or denied, before or behind the right one."""
REFUTED_TOO_LITTLE = {
    "en": [
        "The value is f - b.",
        "Answer: A is wrong. B",
        "A is wrong? B or C",
        "A is not wrong, so B",
        "A and B are wrong, so B",
        "A is wrong, so C",
    ],
    "zh": ["A不对，B也不对", "A不对吗？选B或A"],
}


def texts_with(
    problem, texts: dict[str, list[str]], language: str, score: float | None, gold: dict = GOLD
):
    """Return the texts that have another score."""
    one = problem("choice", gold).model_copy(update={"language": language})
    verdicts = score_batch([one] * len(texts[language]), texts[language])
    pairs = zip(texts[language], verdicts, strict=True)
    return [text for text, verdict in pairs if verdict.score != score]


@for_each("language", sorted(RIGHT))
def test_headings_explanations_json_and_not_a_but_b_name_the_option(problem, language: str) -> None:
    assert [] == texts_with(problem, RIGHT, language, 1.0)


@for_each("language", sorted(WRONG))
def test_another_option_offered_behind_the_answer_is_not_paid(problem, language: str) -> None:
    assert [] == texts_with(problem, WRONG, language, 0.0)


@for_each("language", sorted(RIGHT_NAMED))
def test_so_do_they_where_options_have_a_wording(problem, language: str) -> None:
    assert [] == texts_with(problem, RIGHT_NAMED, language, 1.0, NAMED)
    assert [] == texts_with(problem, WRONG_NAMED, language, 0.0, NAMED)


@pytest.mark.parametrize("language", sorted(UNREAD))
def test_japanese_and_korean_words_beside_an_option_are_an_abstention(
    problem, language: str
) -> None:
    assert [] == texts_with(problem, UNREAD, language, None)


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_an_option_alone_is_read_in_every_language(problem, language: str) -> None:
    one = problem("choice", GOLD).model_copy(update={"language": language})

    (verdict,) = score_batch([one], ["Answer: B"])

    assert "correct" == verdict.reason


@for_each("language", sorted(POSSIBLE))
@for_each("gold", [GOLD, NAMED])
def test_an_option_that_may_be_right_as_well_is_not_paid(problem, language: str, gold) -> None:
    assert [] == texts_with(problem, POSSIBLE, language, 0.0, gold)


@for_each("language", sorted(DISMISSED))
@for_each("gold", [GOLD, NAMED])
def test_other_options_that_are_dismissed_leave_the_right_one(problem, language: str, gold) -> None:
    assert [] == texts_with(problem, DISMISSED, language, 1.0, gold)


@pytest.mark.parametrize("language", sorted(REFUTED_TOO_LITTLE))
def test_options_that_are_refuted_in_part_prove_none(problem, language: str) -> None:
    assert [] == texts_with(problem, REFUTED_TOO_LITTLE, language, 0.0)


LEFT = {
    "en": [
        "Eliminating A and C leaves B",
        "Eliminating A, C leaves B.",
        "By ruling out A and C, we are left with B.",
        "After eliminating A and C, B remains.",
        "A would be right if the box were red, but it is blue, so B",
        "A would be right if the box were red, but B",
        "# Conclusion\n\nB",
        "A is red.\n\n## Conclusion\n\n(B)",
    ],
    "id": [
        "Dengan mengeliminasi A dan C, tersisa B",
        "Setelah mengeliminasi A dan C, tersisa B.",
        "**Kesimpulan**\n\nB",
    ],
    "ms": ["Selepas menyingkirkan A dan C, tinggal B."],
    "th": ["ตัด A และ C ออก เหลือ B", "หลังจากตัดข้อ A และ C ออก จึงเหลือแค่ข้อ B"],
    "fil": ["Matapos alisin ang A at C, B ang natitira."],
    "vi": ["Loại A và C, còn lại B", "Sau khi loại trừ A và C, chỉ còn B.", "## Kết luận\n\nB"],
    "es": ["Eliminando A y C, queda B", "Descartando A y C, solo queda la B.", "# Conclusión\n\nB"],
    "pt": [
        "Eliminando A e C, resta B",
        "Excluindo A e C, sobra apenas a B.",
        "Depois de eliminar A e C, sobra a B.",
        "# Conclusão\n\nB",
    ],
    "zh": ["# 结论\n\nB", "排除A、C，只剩下B。", "排除A和C，剩B"],
}
NOT_LEFT = {
    "en": [
        "Eliminating A leaves C",
        "Eliminating B and C leaves A",
        "Eliminating B leaves B",
        "Eliminating A leaves B and C.",
        "Eliminating A leaves B or C",
        "After eliminating A, B and C remain.",
        "After eliminating B and C, A remains.",
        "After eliminating A and C, B remains a trap.",
        "Not eliminating A and C leaves B",
        "Eliminating A and C does not leave B",
        "Eliminating A and C leaves B, which is wrong",
        "I was wrong that eliminating A and C leaves B.",
        "If eliminating A and C leaves B, then C",
        "A would be right if the box were red, so B",
        "A would be right if the box were red, but C is blue, so B",
        "A would be right if the box were red, but it is blue, so B or A",
        "B would be right if the box were blue, but it is red, so A",
        "# Conclusion\n\nA",
        "# Not the answer\n\nB",
        "# Is it A?\n\nB",
    ],
    "id": ["Dengan mengeliminasi A dan B, tersisa C", "**Kesimpulan**\n\nC"],
    "ms": ["Selepas menyingkirkan B dan C, tinggal A."],
    "th": ["ตัด B และ C ออก เหลือ A", "ตัด A ออก เหลือ B และ C", "ตัด B ออก"],
    "fil": ["Matapos alisin ang B at C, A ang natitira."],
    "zh": ["排除B、C，只剩下A。", "排除A，剩B和C", "排除B", "# 结论\n\nA"],
    "vi": ["Loại B và C, còn lại A", "Loại A, còn lại C"],
    "es": ["Eliminando B y C, queda A", "Eliminando A, quedan B y C"],
    "pt": ["Eliminando B e C, resta A", "Não resta B"],
}


@pytest.mark.parametrize("language", sorted(LEFT))
@pytest.mark.parametrize("gold", [GOLD, NAMED])
def test_what_is_left_or_concluded_is_the_answer(problem, language: str, gold) -> None:
    assert [] == texts_with(problem, LEFT, language, 1.0, gold)
    assert [] == texts_with(problem, NOT_LEFT, language, 0.0, gold)


WORDED = [
    "Answer: B. A: red. C: green.",
    "Answer: B. A: red. B: blue. C: green.",
    "Answer: B\n- A: red\n- C: green",
    "Answer: B. **A**: red. **C**: green.",
    "答案：B\nA: red\nC: green",
    "Jawaban: B. A: red. C: green.",
    "B. A: red. C: green.",
]
NOT_WORDED = [
    "Answer: A. B: blue.",
    "Answer: B\nA: green",
    "Answer: B. A: blue",
    "Answer: B. A: red. C: green. A is also right.",
    "Jawaban: A. B: blue. C: green.",
]


def test_the_wording_of_an_option_behind_a_colon_offers_it_to_nobody(problem) -> None:
    assert [] == texts_with(problem, {"en": WORDED}, "en", 1.0, NAMED)
    assert [] == texts_with(problem, {"en": NOT_WORDED}, "en", 0.0, NAMED)


AFFIRMED = {
    "zh": ["A、C都对，选B", "A和C正确，因此选B", "选项A、C都正确，所以选B"],
    "en": ["A and C are right. Answer: B"],
    "id": ["A dan C benar, jawabannya B"],
    "es": ["A y C son correctas. Respuesta: B"],
}
"""Right only if the question asks for the false option."""


@pytest.mark.parametrize("language", sorted(AFFIRMED))
def test_an_answer_behind_others_that_are_called_right_is_not_judged(
    problem, language: str
) -> None:
    assert [] == texts_with(problem, AFFIRMED, language, None)
    texts = {"zh": ["A、C都不对，选B", "A、C对吗？选B"]}
    assert [] == texts_with(problem, texts, "zh", 1.0)


@pytest.mark.parametrize(
    ("language", "response", "score"),
    [
        ("ru", "Ответ: B", None),
        ("ru", "Ответ: A", None),
        ("ru", "Не A, а B", None),
        ("el", "Απάντηση: B", None),
        ("ar", "الجواب: B", None),
        ("ru", "Answer: B", 1.0),
        ("ru", "B", 1.0),
        ("ru", "A", 0.0),
        ("ja", "Answer: A", 0.0),
        ("ta", "A", 0.0),
    ],
)
def test_a_script_that_is_not_read_is_an_abstention(problem, language, response, score) -> None:
    assert [] == texts_with(problem, {language: [response]}, language, score)


ANNOUNCING = (
    "Answer: {}",
    "The answer is {}",
    "答案：{}",
    "Jawaban: {}",
    "La respuesta es {}",
    "Đáp án là {}",
    "คำตอบคือ {}",
    "I choose {}",
    "Option {} is correct",
    "故选{}",
    "**Answer:** {}",
    "\\boxed{{{}}}",
)
JUNK = (
    "no",
    "0",
    "1",
    "x",
    "the",
    "red",
    "it",
    "is",
    "so",
    "then",
    "and",
    "ok",
    ",",
    ".",
    "!",
    "-",
    '"',
    "'",
    "yes",
    "we",
    "because",
    "since",
    "as",
    "also",
    "but",
    "for",
    "12",
    "%",
    "ya",
    "sí",
    "que",
    "的",
    "了",
    "是",
    "ครับ",
    "thus",
    "of",
    "to",
    "not",
    "or",
    "oh",
    "actually",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "/",
    "=",
    "²",
    "é",
    "ж",
    "한",
    "ね",
    "😀",
    "wait,",
    "\n",
)


@pytest.mark.parametrize(
    ("seed", "count"),
    [(0, 300), *(pytest.param(seed, 5000, marks=pytest.mark.slow) for seed in (1, 2))],
)
def test_two_announced_options_are_never_paid(problem, seed: int, count: int) -> None:
    """Whatever stands between them: nothing takes the first one back."""
    source = random.Random(seed)
    texts: dict[str, list[str]] = {letter: [] for letter in "ABCDE"}
    for _ in range(count):
        first, last = source.sample(sorted(texts), 2)
        junk = " ".join(source.choices(JUNK, k=source.randint(0, 3)))
        forms = source.choices(ANNOUNCING, k=2)
        texts[last].append(f"{forms[0].format(first)} {junk} {forms[1].format(last)}")

    paid: dict[str, list[str]] = {}
    for letter in texts:
        gold = {"correct": [letter], "others": [[other] for other in texts if other != letter]}
        one = problem("choice", gold)
        verdicts = score_batch([one] * len(texts[letter]), texts[letter])
        paid[letter] = [
            t for t, verdict in zip(texts[letter], verdicts, strict=True) if verdict.solved
        ]

    assert {} == {letter: found for letter, found in paid.items() if found}


ARTICLES = [
    ("The answer is a number between 1 and 3.\n\nAnswer: B", 1.0),
    ("Resposta: A alternativa B", 1.0),
    ("A opção correta é a B.", 1.0),
    ("Answer: A blue box. Answer: B", 1.0),
    ("The answer is not A 0. Answer: B", 1.0),
    ("Answer: A no Answer: B", 0.0),
    ("answer: a 0 answer: b", 0.0),
    ("Answer: A no. B", 0.0),
    ("答案：A 的 答案：B", 0.0),
    ("\\boxed{A} no \\boxed{B}", 0.0),
    ("Resposta: A C Resposta: B", 0.0),
]


@pytest.mark.parametrize(("response", "score"), ARTICLES)
def test_a_letter_behind_an_announcement_is_an_option_or_an_article(
    problem, response: str, score: float
) -> None:
    assert [] == texts_with(problem, {"en": [response]}, "en", score, NAMED)


FALSE = {
    "en": [
        "The wrong answer is B.",
        "A wrong answer is B.",
        "The least likely option is B",
        "The option that is not correct is B",
    ],
    "zh": ["错误的答案是B", "不正确的选项是B", "說法錯誤的是B"],
    "id": ["Jawaban yang salah adalah B.", "Opsi yang kurang tepat adalah B"],
    "ms": ["Jawapan yang salah ialah B."],
    "th": ["คำตอบที่ผิดคือ B", "ข้อที่ไม่ถูกต้องคือ B"],
    "vi": ["Đáp án sai là B.", "Phương án không đúng là B."],
    "pt": ["A resposta errada é B.", "A pior opção é B."],
    "es": ["La respuesta incorrecta es B.", "La opción menos adecuada es B."],
    "fr": ["La mauvaise réponse est B."],
    "de": ["Die falsche Antwort ist B."],
    "it": ["La risposta sbagliata è B."],
    "tl": ["Ang maling sagot ay B."],
}


@for_each(("language", "response"), [(tag, text) for tag, texts in FALSE.items() for text in texts])
def test_an_option_that_is_called_false_is_neither_chosen_nor_refused(
    problem, language: str, response: str
) -> None:
    right, wrong = (
        {"correct": [letter], "others": [[other] for other in "ABC" if other != letter]}
        for letter in "BA"
    )

    for gold in (right, wrong):
        row = problem("choice", gold).model_copy(update={"language": language})
        assert "false_option_named" == score_batch([row], [response])[0].reason


@for_each(
    ("response", "score"),
    [
        ("The wrong answer is A, so the answer is B.", 1.0),
        ("A wrong answer is A. The answer is B.", 1.0),
        ("B. The worst choice is A.", 1.0),
        ("The incorrect option is B. Answer: B", 1.0),
        ("The wrong answer is B, so the answer is A.", 0.0),
        ("The answer is A. The wrong answer is B.", 0.0),
    ],
)
def test_what_is_announced_beside_a_false_option_counts(
    problem, response: str, score: float
) -> None:
    assert score == score_batch([problem("choice", GOLD)], [response])[0].score


SELECTED = {
    "en": [
        "Neither A nor C but B.",
        "The answer is neither A nor C but B.",
        "Only B works.",
        "So only option B is correct, because it is blue.",
        "Only B.",
        "All except B are wrong.",
        "Everything but B is wrong.",
        "It has to be B.",
        "Without doubt B.",
        "I am confident it is B.",
        "We can eliminate A and C. So B.",
        "A: no. B: yes. C: no.",
        "- **A**: Incorrect\n- **B**: Correct\n- **C**: Incorrect",
        "(A) no, it is red (B) yes (C) no",
        "A: \u274c\nB: \u2705\nC: \u274c",
        "| A | no |\n| B | yes |\n| C | no |",
        "A: no, it is red.\nB: yes, it is blue.\nC: no.\nThe answer is B.",
    ],
    "zh": [
        "既不是A也不是C，而是B。",
        "只有B正确。",
        "除了B都错。",
        "A：错。B：对。C：错。",
        "不是A、C，而是B",
    ],
    "id": [
        "Bukan A maupun C, melainkan B.",
        "Hanya B yang benar.",
        "Semua salah kecuali B.",
        "A: tidak. B: ya. C: tidak.",
    ],
    "ms": ["Bukan A mahupun C, tetapi B.", "Hanya B betul.", "A: salah. B: betul. C: salah."],
    "th": ["ไม่ใช่ A และไม่ใช่ C แต่เป็น B", "มีเพียง B เท่านั้นที่ถูก", "A: ผิด\nB: ถูก\nC: ผิด"],
    "vi": [
        "Không phải A hay C mà là B.",
        "Chỉ có B đúng.",
        "Tất cả đều sai trừ B.",
        "A: sai. B: đúng. C: sai.",
    ],
    "pt": [
        "Nem A nem C, mas B.",
        "Só B está correta.",
        "Todas exceto B estão erradas.",
        "A: não. B: sim. C: não.",
    ],
    "es": ["Ni A ni C, sino B.", "Solo la opción B es correcta.", "A: no. B: sí. C: no."],
    "fr": [
        "Ni A ni C, mais B.",
        "Seule B convient.",
        "Toutes sauf B sont fausses.",
        "A : faux. B : vrai. C : faux.",
    ],
    "de": [
        "Weder A noch C, sondern B.",
        "Nur B passt.",
        "Alle außer B sind falsch.",
        "Richtig ist B.",
        "A: nein. B: ja. C: nein.",
    ],
    "it": ["Né A né C, ma B.", "Solo B funziona.", "A: no. B: sì. C: no."],
    "tl": [
        "Hindi A ni C kundi B.",
        "B lamang ang tama.",
        "Tama ang B.",
        "A: mali. B: tama. C: mali.",
    ],
}


@for_each(
    ("language", "response"), [(tag, text) for tag, texts in SELECTED.items() for text in texts]
)
def test_one_option_of_all_is_selected(problem, language: str, response: str) -> None:
    golds = [
        {"correct": [letter], "others": [[other] for other in "ABC" if other != letter]}
        for letter in "BAC"
    ]
    rows = [problem("choice", gold).model_copy(update={"language": language}) for gold in golds]

    assert [1.0, 0.0, 0.0] == [one.score for one in score_batch(rows, [response] * 3)]


@for_each(
    "response",
    [
        "A: yes. B: yes. C: no.",
        "A: ya. B: ya. C: tidak.",
        "A: no. B: no. C: no.",
        "A: no. B: maybe. C: no.",
        "B: yes. B: no. C: no.",
        "A: no. B: yes. C: no. The answer is C.",
        "Neither A nor C.",
        "Neither B nor C but A or C.",
        "Not only B works.",
        "Only B is wrong.",
        "All except B are right.",
        "Everything but B.",
        "It has to be B or C.",
        "Only B and C work.",
    ],
)
def test_what_selects_no_option_or_two_is_not_paid(problem, response: str) -> None:
    golds = [
        {"correct": [letter], "others": [[other] for other in "ABC" if other != letter]}
        for letter in "BAC"
    ]

    assert 1.0 not in [
        one.score for one in score_batch([problem("choice", g) for g in golds], [response] * 3)
    ]


@for_each(
    ("language", "response"),
    [
        ("en", "A... no, B."),
        ("en", "A. Wait, no, B."),
        ("zh", "A……不，B。"),
        ("id", "A... bukan, B."),
        ("vi", "A... không, B."),
        ("pt", "A... não, B."),
        ("fr", "A... non, B."),
        ("de", "A... nein, B."),
        ("tl", "A... hindi, B."),
        ("en", "A: true. B: false. C: true."),
    ],
)
def test_an_option_in_place_of_another_one_is_an_abstention(
    problem, language: str, response: str
) -> None:
    golds = [
        {"correct": [letter], "others": [[other] for other in "ABC" if other != letter]}
        for letter in "BA"
    ]
    rows = [problem("choice", gold).model_copy(update={"language": language}) for gold in golds]

    assert [None, 0.0] == [one.score for one in score_batch(rows, [response] * 2)]
