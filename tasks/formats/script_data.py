"""Data inside the script element of a page."""

import json


def script_json(data: object) -> str:
    """Write JSON that a page can hold in `<script type="application/json">`.

    No "<" is left: "</script" would end the element, and "<!--<script" would keep it from ending.
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
