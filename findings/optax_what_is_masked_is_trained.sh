#!/usr/bin/env bash
# Expected: labels of -100, the mark for "no loss here" in PyTorch and in what Transformers' collators
# write, are left out or refused by a loss over integer labels. Seen: they count from the end: each
# masked position has a finite loss and a gradient towards the hundredth token from the end of the
# vocabulary. A label beyond the vocabulary becomes NaN, as the documentation says of labels out of
# range; -100 is in range of this rule. Version: optax 0.2.8, jax 0.10.2. Matters: batches of such a
# collator that are trained on in JAX teach prompt and padding one strange token, and the loss falls.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check optax==0.2.8 jax==0.10.2
cat > show.py <<'PYTHON'
import jax
import jax.numpy as numpy
import optax

vocabulary = 1000
labels = numpy.array([5, -100, -100, 7])


def loss(logits):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


gradient = jax.grad(loss)(numpy.zeros((4, vocabulary)))
toward = [int(token) for token in gradient.argmin(axis=1)]
print("labels:", [int(label) for label in labels])
print("the gradient of each position is towards token", toward)
assert toward == [5, vocabulary - 100, vocabulary - 100, 7]
beyond = optax.softmax_cross_entropy_with_integer_labels(
    numpy.zeros((1, vocabulary)), numpy.array([vocabulary])
)
print("a label beyond the vocabulary:", beyond)
assert bool(numpy.isnan(beyond).all())
PYTHON
JAX_PLATFORMS=cpu HOME=$folder venv/bin/python show.py
