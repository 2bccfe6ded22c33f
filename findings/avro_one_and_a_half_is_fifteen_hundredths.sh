#!/usr/bin/env bash
# Expected: a decimal field of scale 2 holds the price 1.5 as 1.50, or refuses what is not written with
# two places; fastavro does the former. Seen: Apache's own library stores the digits that the Decimal
# happens to have and forgets where its point was, so that with scale 2 the price 1.5 is read as 0.15 by
# every reader, 20 as 0.20 and 1E+3 as 0.01. Equal Decimals are written as different prices; a value
# with too many places is refused, one with too few is not. Versions: avro 1.12.2, fastavro 1.13.1.
# Matters: prices that come from JSON or a database without trailing zeros are divided by 10 or 100 on
# their way through Kafka or a data lake, and only some of them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check avro==1.12.2 fastavro==1.13.1
cat > show.py <<'PYTHON'
import json
from decimal import Decimal
from io import BytesIO

import fastavro
from avro.datafile import DataFileReader, DataFileWriter
from avro.io import DatumReader, DatumWriter
from avro.schema import parse

PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
SCHEMA = {"type": "record", "name": "Offer", "fields": [{"name": "price", "type": PRICE}]}
PRICES = [Decimal(text) for text in ("1.50", "1.5", "20.00", "20", "1E+3")]
rows = [{"price": price} for price in PRICES]

of_apache, of_fastavro = BytesIO(), BytesIO()
writer = DataFileWriter(of_apache, DatumWriter(), parse(json.dumps(SCHEMA)))
for row in rows:
    writer.append(row)
writer.flush()
fastavro.writer(of_fastavro, fastavro.parse_schema(SCHEMA), rows)


def prices(file, read):
    file.seek(0)
    return [row["price"] for row in read(file)]


wrong = prices(of_apache, fastavro.reader)
same = prices(of_apache, lambda file: DataFileReader(file, DatumReader()))
right = prices(of_fastavro, lambda file: DataFileReader(file, DatumReader()))
print("written:                     ", *PRICES)
print("by avro, read by fastavro:   ", *wrong)
print("by avro, read by avro:       ", *same)
print("by fastavro, read by avro:   ", *right)
assert right == PRICES
assert wrong == same == [Decimal(text) for text in ("1.50", "0.15", "20.00", "0.20", "0.01")]
PYTHON
HOME=$folder venv/bin/python show.py
