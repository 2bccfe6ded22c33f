"""The curated set as Croissant 1.0 metadata, which data set tools and search engines read.

Source: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.0.html. Nothing in it depends on
the time: the same set has the same metadata. Three properties that the specification requires, url,
creator and datePublished, say who published a set, where and when: whoever publishes it adds them,
with the recommended version and citation. Until then a reader that checks all of it refuses it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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


def croissant(folder: Path, licences: Mapping[str, str]) -> Json:
    """Describe the tables of a curated set.

    Args:
        folder: with the tables.
        licences: of each source, '' where none is recorded.
    """
    tables = sorted(folder.glob("*.parquet"))
    unknown = sorted(name for name, licence in licences.items() if not licence)
    note = f" No licence is recorded of: {', '.join(unknown)}." if unknown else ""
    sources = ", ".join(sorted(licences))
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "curated",
        "description": f"Problems, demonstrations and held-out problems from {sources}.{note}",
        "license": sorted({licence for licence in licences.values() if licence}),
        "distribution": [_file(path) for path in tables],
        "recordSet": [_records(path) for path in tables],
    }


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
