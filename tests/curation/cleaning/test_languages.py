"""The language of texts, and when it is not certain."""

import pytest

from tasks.curation.cleaning.languages import language_among, languages_of

# ruff: noqa: RUF001 - other scripts are the point

SENTENCES = {
    "en": ("Where is my order?", "The colour is not what I ordered.", "It broke after one day."),
    "pt": ("Onde está o meu pedido?", "A cor não é a que eu pedi.", "Quebrou depois de um dia."),
    "vi": ("Đơn hàng của tôi đang ở đâu?", "Màu không đúng như tôi đặt.", "Giao hàng rất nhanh."),
    "th": ("สินค้าของฉันอยู่ที่ไหน", "สีไม่ตรงกับที่สั่ง", "ส่งไวมาก"),
    "zh": ("我的訂單到哪裡了？", "顏色跟我訂的不一樣。", "出貨很快。"),
    "fil": ("Nasaan na po ang order ko?", "Hindi ito ang kulay na inorder ko.", "Nasira agad ito."),
}


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_are_in_their_language_one_by_one_and_together(language: str):
    texts = SENTENCES[language]

    assert {language} == {language_among(text) for text in texts}
    assert (language,) == languages_of(texts * 5).tags


@pytest.mark.parametrize("text", ["", "12 345", "XK-9", "#1!"])
def test_a_text_without_words_is_in_no_language(text: str):
    assert "und" == language_among(text)


def test_a_table_of_several_languages_is_in_each_of_them():
    texts = [text for sentences in SENTENCES.values() for text in sentences] * 5

    languages = languages_of(texts)

    assert {*SENTENCES} == {*languages.tags}
    assert languages.is_certain


def test_short_titles_of_indonesian_or_malay_are_in_one_of_the_two():
    titles = ("Pisau roti yang tajam", "Mangkuk kaca besar", "Kereta kayu untuk anak", "Sudu kayu")

    languages = languages_of([f"{title} {n}" for title in titles for n in range(20)])

    assert (("id", "ms"), False) == (languages.tags, languages.is_certain)


def test_long_reviews_tell_indonesian_from_malay():
    reviews = (
        "Sudah dua kali beli di toko ini, pelayanannya oke dan barangnya sesuai deskripsi.",
        "Terima kasih gan, paketnya sudah sampai dengan selamat, mantap banget.",
        "Awalnya aku ragu karena murah, ternyata kualitasnya lumayan juga.",
        "Bahannya tipis dan jahitannya nggak rapi, jangan beli deh.",
        "Warnanya beda sama gambar, tapi ya sudahlah.",
        "Barangnya bagus banget, tapi pengirimannya lama karena kurirnya tidak bisa dihubungi.",
        "Ukurannya nggak sesuai sama yang di foto, aku kecewa banget kak.",
    )

    assert (("id",), True) == (
        languages_of(reviews * 10).tags,
        languages_of(reviews * 10).is_certain,
    )
