#!/usr/bin/env bash
# Expected: the reference evaluator that comes with ONNX gives at least the digits of a runtime, being
# what runtimes are compared with. Seen: its LogSoftmax takes the logarithm of the softmax, in the type of
# the input: of the logits 104 and 0 the second has the log-probability minus infinity, where onnxruntime
# has -104; from -88 on digits go, and in float16 it is infinite from -18 on. Versions: onnx 1.23.2,
# onnxruntime 1.32.0. Matters: an exported policy or reward model that is tested against the reference
# fails although it is right; log-probabilities that the evaluator computes make ratios and KL infinite.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cat > show.py <<'PYTHON'
import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession


def second(logit, kind):
    """The log-probability of the second of two logits, the other one being zero: of both evaluators."""
    x, y = (helper.make_tensor_value_info(name, kind, [1, 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("LogSoftmax", ["x"], ["y"], axis=-1)], "graph", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    feeds = {"x": np.array([[logit, 0]], helper.tensor_dtype_to_np_dtype(kind))}
    runtime = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [float(evaluator.run(None, feeds)[0][0, 1]) for evaluator in (ReferenceEvaluator(model), runtime)]


for logit, kind, infinite in (
    (20, TensorProto.FLOAT, False),
    (80, TensorProto.FLOAT, False),
    (104, TensorProto.FLOAT, True),
    (1000, TensorProto.FLOAT, True),
    (10, TensorProto.FLOAT16, False),
    (18, TensorProto.FLOAT16, True),
):
    reference, runtime = second(logit, kind)
    print(f"{TensorProto.DataType.Name(kind)}, logits {logit} and 0: reference {reference}, runtime {runtime}")
    assert abs(runtime + logit) < 0.01
    assert reference == -np.inf if infinite else abs(reference + logit) < 0.1
PYTHON
HOME=$folder venv/bin/python -W ignore show.py
