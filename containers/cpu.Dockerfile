# CPU stages (curation, merge, release, audit, retraining) and continuous integration.
#   docker build -f containers/cpu.Dockerfile -t REGISTRY/cpu:0.1.0 .
ARG BASE=python:3.11.9-slim-bookworm
FROM ${BASE}

# What judges programs: bubblewrap, the best sandbox there is for them, and compilers for C++ and
# Java. default-jdk-headless is Java 17 here.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap default-jdk-headless g++ libc6-dev make \
    && rm -rf /var/lib/apt/lists/*

# torch first, from an index with CPU wheels; everything else from the lock.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir uv==0.13.8 \
    && pip install --no-cache-dir torch==2.13.0 --extra-index-url ${TORCH_INDEX}
WORKDIR /root
COPY lock_cpu.txt ./
RUN uv pip install --system --no-cache --no-deps -r lock_cpu.txt

# Part of cache versions, of which every pod knows all.
COPY containers/lock_*.txt containers/
COPY pyproject.toml ./
COPY data_schemas data_schemas
COPY tasks tasks
COPY workflows workflows

# Ours wins over any installed package called tasks or workflows. Flyte unpacks newer code into
# /root when a workflow is registered fast, so the user owns it.
ENV PYTHONPATH=/root HOME=/root PYTHONUNBUFFERED=1 DO_NOT_TRACK=1 MLFLOW_DISABLE_TELEMETRY=true
RUN useradd --uid 1000 --home-dir /root --no-create-home flyte && chown -R flyte:flyte /root
ARG COMMIT=
ENV EACHPROMPT_COMMIT=${COMMIT}
LABEL org.opencontainers.image.revision=${COMMIT}
USER 1000
