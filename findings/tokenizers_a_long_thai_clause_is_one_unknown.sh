#!/usr/bin/env bash
# Expected: WordPiece breaks a long word into pieces, as it does a short one; only a letter that is not
# in the vocabulary is unknown. Seen: a word of more than 100 letters is one [UNK], even if the tokenizer
# was trained on it. Thai, Lao, Khmer and Burmese put no spaces between words, and the pre-tokenizer of
# BERT parts Chinese characters only, so that each clause of 101 letters is a single [UNK]: two reviews
# that say the opposite have the same tokens. Cut to 100 letters they have not. The limit is in the file
# (max_input_chars_per_word), no warning is given. Version: tokenizers 0.23.3. Matters: embeddings of
# such clauses are equal: deduplication, retrieval and classifiers take them for one text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check tokenizers==0.23.3
cat > show.py <<'PYTHON'
from tokenizers import BertWordPieceTokenizer

good = "ร้านนี้ขายเสื้อผ้าเด็กราคาถูกส่งเร็วมากแม่ค้าตอบไวคุณภาพดีเกินราคาแนะนำให้ซื้อเลยค่ะสินค้าตรงปกทุกอย่างไม่ผิดหวังเลย"
poor = "สินค้าไม่ดีเลยขนาดไม่ตรงตามที่สั่งสีก็ผิดส่งช้ามากติดต่อร้านค้าไม่ได้เสียเงินฟรีไม่แนะนำให้ซื้อเด็ดขาดเสียความรู้สึกมากค่ะ"
tokenizer = BertWordPieceTokenizer(strip_accents=False, lowercase=False)
tokenizer.train_from_iterator([good, poor], vocab_size=200, show_progress=False)


def tokens(text):
    return tokenizer.encode(text, add_special_tokens=False).tokens


for text in (good, poor):
    print(len(text), "letters:", tokens(text), "the first 100:", len(tokens(text[:100])), "pieces")
    assert tokens(text) == tokens(text[:101]) == ["[UNK]"]
    assert len(tokens(text[:100])) > 1 and "[UNK]" not in tokens(text[:100])
assert tokens(good[:100]) != tokens(poor[:100])
PYTHON
HOME=$folder venv/bin/python show.py
