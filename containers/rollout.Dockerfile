# Stages that mostly generate (grading, evaluation) on H100s, with vLLM.
#   docker build -f containers/rollout.Dockerfile -t REGISTRY/rollout:0.1.0 .
# CUDA 13 comes with the wheels; the node brings the driver.
ARG BASE=python:3.11.9-slim-bookworm
FROM ${BASE}

# Compilers: Triton builds kernels when they are first used, and code tests run C++ and Java,
# under bubblewrap. NCCL opens the three RDMA packages where nodes have InfiniBand or RoCE.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap default-jdk-headless gcc g++ libc6-dev \
       ibverbs-providers libibverbs1 librdmacm1 \
    && rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir uv==0.13.8
WORKDIR /root
COPY lock_cpu.txt ./
COPY containers/lock_rollout.txt containers/
RUN uv pip install --system --no-cache --no-deps -r containers/lock_rollout.txt

# Part of cache versions, of which every pod knows all.
COPY containers/lock_*.txt containers/
COPY pyproject.toml ./
COPY data_schemas data_schemas
COPY tasks tasks
COPY workflows workflows

# What is compiled when it is first used finds the CUDA 13 compiler and headers of the wheels.
ENV CUDA_HOME=/usr/local/lib/python3.11/site-packages/nvidia/cu13
ENV PYTHONPATH=/root HOME=/root PYTHONUNBUFFERED=1 DO_NOT_TRACK=1 MLFLOW_DISABLE_TELEMETRY=true \
    VLLM_NO_USAGE_STATS=1 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN useradd --uid 1000 --home-dir /root --no-create-home flyte && chown -R flyte:flyte /root
ARG COMMIT=
ENV EACHPROMPT_COMMIT=${COMMIT}
LABEL org.opencontainers.image.revision=${COMMIT}
USER 1000
