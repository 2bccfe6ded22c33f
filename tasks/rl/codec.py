"""Exact serialisation of rollouts, for responses in flight at a commit and for step snapshots.

One npz of a few long arrays (the sequences of all rollouts end to end) and one JSON array with the
rest. The same rollouts give the same bytes: npz members are written without timestamps.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from data_schemas.rollouts import KeptSets, Rollout, RouterTrace, StopReason
from tasks.algorithms.routing import route_digest
from tasks.errors import DataError
from tasks.store.files import canonical_json

Arrays = Mapping[str, NDArray | list[NDArray]]
"""By name; a list is one array in parts, end to end."""
_META = "meta.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first date that a zip file can have."""


def pack(arrays: Arrays, meta: Any) -> bytes:
    """Write arrays and a JSON value into one file of deterministic bytes."""
    out = io.BytesIO()
    pack_into(out, arrays, meta)
    return out.getvalue()


def pack_into(out: IO[bytes], arrays: Arrays, meta: Any) -> None:
    """Write what `pack` returns, part by part: the routes of a step may be tens of GB."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            array = arrays[name]
            parts = array if isinstance(array, list) else [array]
            dtype = np.result_type(*parts)
            rows = sum(map(len, parts))
            head = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                head,
                {
                    "descr": np.lib.format.dtype_to_descr(dtype),
                    "fortran_order": False,
                    "shape": (rows, *parts[0].shape[1:]),
                },
            )
            member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            # Known before it is written: above 2 GiB zipfile has to choose zip64 in the header.
            member.file_size = head.tell() + dtype.itemsize * sum(part.size for part in parts)
            with archive.open(member, "w") as stream:
                stream.write(head.getbuffer())
                for part in parts:
                    stream.write(np.ascontiguousarray(part, dtype).data)
        archive.writestr(zipfile.ZipInfo(_META, _EPOCH), canonical_json(meta))


def unpack(data: bytes) -> tuple[dict[str, NDArray], Any]:
    """Read what `pack` wrote.

    Raises:
        DataError: the bytes are something else.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            arrays = {
                name.removesuffix(".npy"): np.load(
                    io.BytesIO(archive.read(name)), allow_pickle=False
                )
                for name in archive.namelist()
                if name != _META
            }
            return arrays, json.loads(archive.read(_META))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise DataError(f"not a file of packed arrays: {error}") from error


def rollout_arrays(
    rollouts: Sequence[Rollout], *, with_routes: bool = True
) -> tuple[dict[str, NDArray | list[NDArray]], list[dict[str, Any]]]:
    """Long arrays of all sequences end to end, and a JSON row per rollout.

    Traces must all have the same [., L, K], or be missing. Without their routes they are digests.
    """
    recorded = [rollout.trace for rollout in rollouts if rollout.trace is not None]
    traces = [one.experts_TLK for one in recorded if with_routes and one.experts_TLK.shape[1]]
    arrays: dict[str, NDArray | list[NDArray]] = {
        "prompt_tokens": _concatenate([rollout.prompt_tokens for rollout in rollouts], np.int32),
        "response_tokens": _concatenate(
            [rollout.response_tokens for rollout in rollouts], np.int32
        ),
        "logprobs": _concatenate([rollout.logprobs for rollout in rollouts], np.float32),
        # int16 where any trace has missing rows, else uint8.
        "traces": list(traces) or np.empty((0, 0, 0), np.uint8),
    }
    if any(rollout.sampled is not None for rollout in rollouts):
        masks = [
            np.ones(len(r.response_tokens), np.bool_) if r.sampled is None else r.sampled
            for r in rollouts
        ]
        arrays["sampled"] = _concatenate(masks, np.bool_)
    sets = [rollout.kept for rollout in rollouts if rollout.kept is not None]
    if sets:
        arrays["kept_ids"] = _concatenate([one.ids for one in sets], np.int32)
        arrays["kept_counts"] = _concatenate([one.counts for one in sets], np.int32)
    bare = [rollout.bare_prompt for rollout in rollouts if rollout.bare_prompt is not None]
    if bare:
        arrays["bare_prompts"] = _concatenate(bare, np.int32)
    return arrays, [
        {
            "problem_id": rollout.problem_id,
            "sample": rollout.sample,
            "prompt": len(rollout.prompt_tokens),
            "response": len(rollout.response_tokens),
            "rows": -1 if rollout.trace is None else len(rollout.trace.experts_TLK),
            "signed": rollout.trace is not None and rollout.trace.experts_TLK.dtype == np.int16,
            "stop": rollout.stop_reason.value,
            "version": rollout.policy_version,
            "role": rollout.role,
        }
        | ({"earlier": rollout.earlier} if rollout.earlier else {})
        | _routes_out(rollout.trace, with_routes=with_routes)
        | ({} if rollout.kept is None else {"kept": len(rollout.kept.ids)})
        | _shaping_out(rollout)
        for rollout in rollouts
    ]


def rollouts_of(arrays: Mapping[str, NDArray], rows: Sequence[Mapping[str, Any]]) -> list[Rollout]:
    """Rebuild rollouts from the result of `rollout_arrays`."""
    prompts, responses, traces, bare = _Cursor(), _Cursor(), _Cursor(), _Cursor()
    ids, counts = _Cursor(), _Cursor()
    rollouts = []
    for row in rows:
        response = responses.next(row["response"])
        trace = None
        if row["rows"] >= 0:
            dtype = np.int16 if row["signed"] else np.uint8
            if "routes" in row:
                trace = RouterTrace(np.empty((row["rows"], 0, 0), dtype), row["routes"])
            else:
                trace = RouterTrace(arrays["traces"][traces.next(row["rows"])].astype(dtype))
        rollouts.append(
            Rollout(
                problem_id=row["problem_id"],
                sample=row["sample"],
                prompt_tokens=arrays["prompt_tokens"][prompts.next(row["prompt"])],
                response_tokens=arrays["response_tokens"][response],
                logprobs=arrays["logprobs"][response],
                trace=trace,
                stop_reason=StopReason(row["stop"]),
                policy_version=row["version"],
                earlier=tuple((version, tokens) for version, tokens in row.get("earlier", ())),
                role=row["role"],
                sampled=_mask(arrays, response),
                shown=tuple(row.get("shown", ())),
                bare_prompt=arrays["bare_prompts"][bare.next(row["bare"])]
                if "bare" in row
                else None,
                kept=KeptSets(
                    arrays["kept_ids"][ids.next(row["kept"])],
                    arrays["kept_counts"][counts.next(row["response"])],
                )
                if "kept" in row
                else None,
            )
        )
    return rollouts


def _routes_out(trace: RouterTrace | None, *, with_routes: bool) -> dict[str, Any]:
    """Say the digest of routes that are not written, or were not read."""
    if trace is None or (with_routes and trace.experts_TLK.shape[1]):
        return {}
    return {"routes": route_digest(trace)}


def _mask(arrays: Mapping[str, NDArray], response: slice) -> NDArray[np.bool_] | None:
    """Mask of a response; None if all of its tokens were sampled."""
    mask_R = arrays["sampled"][response] if "sampled" in arrays else None
    return None if mask_R is None or mask_R.all() else mask_R


def _shaping_out(rollout: Rollout) -> dict[str, Any]:
    """Say what a shaped prompt showed; nothing for other rollouts, whose bytes stay."""
    shaping: dict[str, Any] = {"shown": list(rollout.shown)} if rollout.shown else {}
    return shaping if rollout.bare_prompt is None else shaping | {"bare": len(rollout.bare_prompt)}


class _Cursor:
    """Slices one after the other."""

    def __init__(self) -> None:
        self._at = 0

    def next(self, length: int) -> slice:
        start = self._at
        self._at += length
        return slice(start, self._at)


def _concatenate(arrays: Sequence[NDArray], dtype: type) -> NDArray:
    return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype, copy=False)
