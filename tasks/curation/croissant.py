"""The curated set as Croissant 1.0 metadata, which data set tools and search engines read.

Source: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.0.html. Nothing in it depends on
the time: the same set has the same metadata. Three properties that the specification requires, url,
creator and datePublished, say who published a set, where and when. No run knows them: settings do
(`curation.publication`). Where one of the required properties lacks, the description says so; the
claim of a version stays, because readers take the vocabulary from it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data_schemas.settings import Publication
from tasks.formats.licences import spdx_name
from tasks.store.files import sha256_file

Json = dict[str, Any]
_TERMS = (
    "citeAs column equivalentProperty extract field fileObject fileProperty fileSet format "
    "includes isLiveDataset jsonPath key md5 parentField path recordSet references regex "
    "repeated replace samplingRate separator source subField transform"
)
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
"""The context that the specification prescribes."""
_TYPES = {
    pa.string(): "sc:Text",
    pa.int64(): "sc:Integer",
    pa.float64(): "sc:Float",
    pa.bool_(): "sc:Boolean",
}


REQUIRED = ("license", "url", "creator", "datePublished")
"""Required properties of a data set that a run may lack, in the order of the specification."""
_SPDX = "https://spdx.org/licenses"


def croissant(folder: Path, licences: Mapping[str, str], publication: Publication) -> Json:
    """Describe the tables of a curated set.

    Args:
        folder: with the tables.
        licences: of each source, '' where none is recorded.
        publication: of the set; without one its description says what lacks.
    """
    tables = sorted(folder.glob("*.parquet"))
    unknown = sorted(name for name, licence in licences.items() if not licence)
    note = f" No licence is recorded of: {', '.join(unknown)}." if unknown else ""
    sources = ", ".join(sorted(licences))
    published: Json = {
        "license": [_licence(one) for one in sorted({*licences.values()} - {""})],
        "url": publication.url,
        "creator": [
            *({"@type": "sc:Organization", "name": name} for name in publication.organizations),
            *({"@type": "sc:Person", "name": name} for name in publication.persons),
        ],
        "datePublished": publication.date,
    }
    if missing := [name for name in REQUIRED if not published[name]]:
        note += f" Croissant 1.0 also requires: {', '.join(missing)}."
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "curated",
        "description": f"Problems, demonstrations and held-out problems from {sources}.{note}",
        **{name: value for name, value in published.items() if value},
        "distribution": [_file(path) for path in tables],
        "recordSet": [_records(path) for path in tables],
    }


def _licence(licence: str) -> str | Json:
    """Return the address of a licence that SPDX lists, or words for terms as a CreativeWork."""
    name = spdx_name(licence)
    return f"{_SPDX}/{name}.html" if name else {"@type": "sc:CreativeWork", "name": licence}


def _file(path: Path) -> Json:
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": sha256_file(path),
    }


def _records(path: Path) -> Json:
    return {
        "@type": "cr:RecordSet",
        "@id": path.stem,
        "name": path.stem,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{path.stem}/{column.name}",
                "name": f"{path.stem}/{column.name}",
                "dataType": _TYPES[column.type],
                "source": {"fileObject": {"@id": path.name}, "extract": {"column": column.name}},
            }
            for column in pq.read_schema(path)
        ],
    }
