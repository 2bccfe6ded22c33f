#!/usr/bin/env bash
# Expected: a document whose text is a query is a hit of that query. Seen: the default tokenizer
# drops every word of 40 bytes or more, from the document and from the query, and says nothing. A
# commit of 40 digits, a SHA-256 and a Chinese title of 14 characters without a blank are in no index:
# the query for the very same text has no hit, while 39 digits and 13 characters have one. Version:
# tantivy 0.27.0. Matters: search tools of an environment, and retrieval over listings: titles in
# languages without blanks go missing by their length, 13 characters and not 40, for one has three bytes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check tantivy==0.27.0
cat > show.py <<'PYTHON'
import tantivy

TITLE = "大容量便携不锈钢保温水杯男女"  # a steel thermos mug, for men and women, large and portable
COMMIT = "bcb11f27a9" * 4
texts = {COMMIT: 0, COMMIT[:-1]: 1, COMMIT + COMMIT[:24]: 0, TITLE: 0, TITLE[:-1]: 1}
builder = tantivy.SchemaBuilder()
builder.add_text_field("text", stored=True)
index = tantivy.Index(builder.build())
writer = index.writer()
for text in texts:
    writer.add_document(tantivy.Document(text=[text]))
writer.commit()
index.reload()
for text, hits in texts.items():
    count = index.searcher().search(index.parse_query(f'"{text}"', ["text"]), 5).count
    print(f"{text}: {len(text)} characters, {len(text.encode())} bytes, {count} hits")
    assert count == hits, text
PYTHON
HOME=$folder venv/bin/python show.py
