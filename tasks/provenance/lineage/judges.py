"""Which model judges: a folder is an input of the stage, what answers at an endpoint a fact of it.

A model behind an endpoint cannot be copied into the store. What it says of itself, what it proves
and how it decides known cases are facts of the stage that asks it, so that an audit can name it, or
say that nobody proved which one it was.
"""

import logging
import os
import secrets

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.texts import on_one_line
from tasks.errors import EngineError, SettingsError
from tasks.gym.judging.endpoint import ApiKey, FailedPrompt
from tasks.gym.judging.http_judge import API_KEY
from tasks.gym.judging.identity import canary_verdicts, introduce
from tasks.gym.judging.opening import key_of
from tasks.provenance.lineage.base_model import read_model
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.signatures.served import CHALLENGE, verify
from tasks.provenance.lineage.stage import StageRecord

logger = logging.getLogger(__name__)
_MOST_CHARACTERS = 120
"""Longest quotation of what an endpoint says, in a statement."""


def read_encoder(encoder: JudgeSettings, record: StageRecord, role: str) -> JudgeSettings:
    """Record an encoder of kind 'model' as an input; return settings that name its local folder."""
    if encoder.kind is not JudgeKind.MODEL:
        return encoder
    folder = read_model(role, encoder.address, record)
    return encoder.model_copy(update={"address": str(folder)})


def read_judge(judge: JudgeSettings, record: StageRecord, role: str = "judge") -> JudgeSettings:
    """Record which model judges: a folder as an input, what an endpoint says and proves as facts.

    Returns:
        Settings that name the local folder, or the weights that the endpoint proved.

    Raises:
        SettingsError: the endpoint does not prove the weights that the settings ask for.
        EngineError: it does not answer, and the settings ask for weights.
    """
    if judge.kind is not JudgeKind.HTTP:
        return read_encoder(judge, record, role)
    key = ApiKey(API_KEY, os.environ.get(API_KEY, ""))
    served, has_replied = _identify(judge, record, role, key)
    if has_replied:
        record.facts({f"{role}/canaries": canary_verdicts(served, key)})
    return served


def read_guard(guard: JudgeSettings, record: StageRecord, role: str) -> JudgeSettings:
    """Do as `read_judge` does, for a model that rates chats and compares none."""
    if guard.kind is not JudgeKind.HTTP:
        return read_encoder(guard, record, role)
    return _identify(guard, record, role, key_of(guard.address))[0]


def _identify(
    judge: JudgeSettings, record: StageRecord, role: str, key: ApiKey
) -> tuple[JudgeSettings, bool]:
    """Record what an endpoint says and proves of its model.

    Returns:
        Settings that name the weights it proved, and whether it replied at all.
    """
    keys = trusted_keys(record.store.uri)
    challenge = f"{CHALLENGE}{secrets.token_hex(16)}"
    reply = introduce(judge, key, challenge)
    if isinstance(reply, FailedPrompt) and judge.weights:
        raise EngineError(
            f"{role} at {judge.address} did not prove its weights, as {role}.weights asks: "
            f"{reply.cause}"
        )
    facts = {"address": judge.address}
    weights = ""
    try:
        if isinstance(reply, FailedPrompt):
            raise ValueError(f"no reply: {reply.cause}")
        facts["answers_as"] = on_one_line(reply.model)[:_MOST_CHARACTERS]
        weights, signed_by = verify(reply.proof, challenge, keys)
        if judge.weights not in ("", weights):
            raise ValueError(f"it proves weights {weights}")
        facts |= {"weights": weights, "signed_by": signed_by}
    except ValueError as error:
        if judge.weights:
            raise SettingsError(
                f"{role} at {judge.address} has to prove weights {judge.weights}: {error}. Serve "
                "that model with `eachprompt chat --serve`, or set weights to what is served."
            ) from error
        facts["not_proved"] = on_one_line(str(error))[:_MOST_CHARACTERS]
        logger.warning("which model answers at %s is not proved: %s", judge.address, error)
    record.facts({f"{role}/{name}": value for name, value in facts.items()})
    return judge.model_copy(update={"weights": weights}), not isinstance(reply, FailedPrompt)
