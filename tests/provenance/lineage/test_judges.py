"""Which model judged behind an endpoint is proved by our own server, and by no other."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from data_schemas.artifacts import Context, DatasetRef, StoreRef
from data_schemas.rl_settings import JudgeSettings, RewardSettings
from data_schemas.statements import Statement
from tasks.engines.chat import load_tokenizer
from tasks.engines.protocols import Sampling
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.errors import EngineError, SettingsError
from tasks.evaluation.chat import DialogueModel, serve
from tasks.gym.judging.http_judge import HttpJudge
from tasks.gym.judging.scripted import preferring
from tasks.provenance.audit.text import verdict
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.judges import read_guard, read_judge
from tasks.provenance.lineage.signatures.dsse import Signer, fingerprint, signer_of
from tasks.provenance.lineage.signatures.keys import PublicKey, find_signer
from tasks.provenance.lineage.signatures.served import CHALLENGE, verify, vouch
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.statements import load_statement
from tests.chat_endpoint import NOBODY, completion, endpoint, prompt, send
from tests.processes import serving

pytestmark = pytest.mark.parametrize("store", ["sqlite"], indirect=True)
GREEDY = Sampling(max_new_tokens=8, temperature=0.0, seed=0, record_routes=False)
STRANGER = signer_of(ec.derive_private_key(7, ec.SECP256R1()))


def prefer(worth: Callable[[str], float]) -> Callable[[str], str]:
    """Compare where there is something to compare."""
    script = preferring(worth)
    return lambda text: (script(text) or "") if "Answer A" in text else "a judge"


LONGER, SHORTER = prefer(len), prefer(lambda text: -len(text))
WEIGHTS, OTHERS = "a" * 64, "b" * 64


@pytest.fixture
def model(tiny_moe: Path, tmp_path: Path) -> DialogueModel:
    """A judge that prefers the shorter answer, with positions for long replies."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in tiny_moe.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "config.json").unlink()
    config = json.loads((tiny_moe / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8192}))
    engine = ScriptedRolloutEngine(load_tokenizer(folder), lambda text, _: SHORTER(text))
    return DialogueModel(folder, engine)


@contextmanager
def served(model: DialogueModel, weights: str, signer: Signer | None) -> Iterator[str]:
    with serve(model, "judge", GREEDY, 0, weights, signer) as server, serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"


def judge_at(address: str, weights: str = "", timeout_s: float = 60.0) -> JudgeSettings:
    return JudgeSettings(
        kind="http", address=address, model="judge", weights=weights, timeout_s=timeout_s
    )


def ask_in_stage(
    store: StoreRef, execution, judge: JudgeSettings, read=read_judge
) -> tuple[JudgeSettings, Statement, DatasetRef]:
    """Read a judge in a stage that makes something."""
    settings = RewardSettings(judge=judge)
    with stage("rl/two", settings, Context(store, execution), "c") as record:
        result = read(judge, record, "judge")
        with record.output("report") as out:
            (out / "empty").touch()
        ref = record.ref("report", DatasetRef)
    return result, load_statement(store.uri, ref.statement), ref


def test_our_own_server_proves_its_weights_before_use_and_the_audit_names_them(
    store, execution, model
):
    signer = find_signer()
    assert signer is not None
    with served(model, WEIGHTS, signer) as address:
        judge, statement, ref = ask_in_stage(store, execution, judge_at(address))

    assert WEIGHTS == judge.weights
    assert {
        "judge/address": address,
        "judge/answers_as": "judge",
        "judge/weights": WEIGHTS,
        "judge/signed_by": fingerprint(signer.public),
        "judge/canaries": "0.5, 0",
    } == statement.facts
    text = verdict(audit(ref.digest, "", store.uri))
    assert f"{address} (weights {WEIGHTS[:12]}, key {fingerprint(signer.public)[:16]})" in text
    assert "Not proved" not in text


def test_a_foreign_server_is_named_by_what_it_says_and_not_proved(store, execution):
    def behave(handler, asked, _):
        reply = json.loads(completion(LONGER(asked["messages"][-1]["content"])))
        send(handler, json.dumps(reply | {"model": "qwen\x1b[2J3"}).encode())

    with endpoint(behave) as address:
        found, statement, ref = ask_in_stage(store, execution, judge_at(address))

    assert "" == found.weights
    assert {
        "judge/address": address,
        "judge/answers_as": "qwen\\x1b[2J3",
        "judge/not_proved": "it gives no proof of its weights; `eachprompt chat --serve` does",
        "judge/canaries": "0.5, 1",
    } == statement.facts
    assert f"Not proved: which model answered at {address}." in verdict(
        audit(ref.digest, "", store.uri)
    )


@pytest.mark.parametrize(
    ("signer", "weights", "reason"),
    [
        (None, WEIGHTS, "it gives no proof of its weights"),
        (STRANGER, WEIGHTS, f"key {fingerprint(STRANGER.public)[:16]}, which is not trusted"),
        ("own", OTHERS, f"it proves weights {OTHERS}"),
    ],
)
def test_weights_that_settings_ask_for_are_proved_or_nothing_is_asked(
    store, execution, model, signer, weights, reason
):
    with (
        served(model, weights, find_signer() if signer == "own" else signer) as address,
        pytest.raises(SettingsError, match=reason),
    ):
        ask_in_stage(store, execution, judge_at(address, WEIGHTS))


def test_an_endpoint_that_is_down_stops_a_stage_only_if_it_has_to_prove_its_weights(
    store, execution
):
    judge, statement, _ = ask_in_stage(store, execution, judge_at(NOBODY, timeout_s=0.1))

    assert "" == judge.weights
    assert {"judge/address", "judge/not_proved"} == statement.facts.keys()
    with pytest.raises(EngineError, match="did not prove its weights"):
        ask_in_stage(store, execution, judge_at(NOBODY, WEIGHTS, timeout_s=0.1))


def test_a_guard_proves_its_weights_too_and_compares_nothing(store, execution, model):
    with served(model, WEIGHTS, find_signer()) as address:
        judge, statement, _ = ask_in_stage(store, execution, judge_at(address), read_guard)

    assert WEIGHTS == judge.weights
    assert "judge/canaries" not in statement.facts


@pytest.mark.attack
def test_a_model_that_is_exchanged_after_its_proof_is_noticed_at_its_first_reply(store, model):
    with served(model, OTHERS, find_signer()) as address:
        judge = HttpJudge(address, "judge", weights=WEIGHTS)
        with pytest.raises(SettingsError, match="proved weights aaaaaaaaaaaa, and 'bbbbbbbbbbbb'"):
            judge.ask([prompt("hello")])
        judge.close()


@pytest.mark.attack
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda proof: proof, ""),
        (lambda _: "", "gives no proof"),
        (lambda _: "{}", "cannot be read"),
        (lambda _: "[" * 100_000, "cannot be read"),
        (lambda _: vouch(WEIGHTS, f"{CHALLENGE}0", STRANGER).model_dump_json(), "another"),
        (lambda _: vouch(WEIGHTS, f"{CHALLENGE}1", SECOND).model_dump_json(), "not trusted"),
        (lambda proof: proof.replace('"payload":"', '"payload":"AAAA'), "cannot be read"),
        (lambda _: _with_payload_of(OTHERS), "signature of its proof is not valid"),
        (lambda _: vouch(WEIGHTS, f"{CHALLENGE}1", REVOKED).model_dump_json(), "not trusted"),
    ],
)
def test_only_a_trusted_key_s_answer_to_the_challenge_is_a_proof(store, change, reason):
    keys = {
        STRANGER.public: PublicKey(fingerprint(STRANGER.public)),
        REVOKED.public: PublicKey(fingerprint(REVOKED.public), last=""),
    }
    proof = change(vouch(WEIGHTS, f"{CHALLENGE}1", STRANGER).model_dump_json())

    if reason:
        with pytest.raises(ValueError, match=reason):
            verify(proof, f"{CHALLENGE}1", keys)
    else:
        assert (WEIGHTS, fingerprint(STRANGER.public)) == verify(proof, f"{CHALLENGE}1", keys)


SECOND = signer_of(ec.derive_private_key(8, ec.SECP256R1()))
REVOKED = signer_of(ec.derive_private_key(9, ec.SECP256R1()))


def _with_payload_of(weights: str) -> str:
    """Put what another proof says under the signature of a right one."""
    right = vouch(WEIGHTS, f"{CHALLENGE}1", STRANGER)
    other = vouch(weights, f"{CHALLENGE}1", SECOND)
    return right.model_copy(update={"payload": other.payload}).model_dump_json()
