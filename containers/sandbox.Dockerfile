# Programs nobody trusts, and nothing else: a bare Python, compilers for C++ and Java, the sandbox
# and bubblewrap.
#   docker build -f containers/sandbox.Dockerfile -t REGISTRY/sandbox:0.1.0 .
#   docker run --network none --read-only --cap-drop ALL --security-opt no-new-privileges \
#       --pids-limit 256 --memory 2g --tmpfs /tmp -it REGISTRY/sandbox:0.1.0
ARG BASE=python:3.11.9-slim-bookworm
FROM ${BASE}

RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap default-jdk-headless g++ libc6-dev \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /root
COPY tasks/__init__.py tasks/errors.py tasks/
COPY tasks/gym/__init__.py tasks/gym/
COPY tasks/gym/sandbox tasks/gym/sandbox

ENV PYTHONPATH=/root HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN useradd --uid 65532 --no-create-home --home-dir /tmp nobody-else && chmod -R a+rX /root
ARG COMMIT=
ENV EACHPROMPT_COMMIT=${COMMIT}
LABEL org.opencontainers.image.revision=${COMMIT}
USER 65532
