# Stages that train (SFT, RL, pretraining) on H100s, with Megatron-core, and with vLLM beside it
# because an RL step generates and trains in one pod.
#   docker build -f containers/trainer.Dockerfile -t REGISTRY/trainer:0.1.0 .
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
COPY containers/lock_trainer.txt containers/
RUN uv pip install --system --no-cache --no-deps -r containers/lock_trainer.txt

# Compilers and headers of CUDA 13, cuDNN and NCCL come with the wheels: for Transformer Engine here,
# and for what is compiled when it is first used.
ENV CUDA_HOME=/usr/local/lib/python3.11/site-packages/nvidia/cu13

# Transformer Engine: the core is a wheel, its torch part is source only and is compiled for the
# torch of the lock (C++ only: no GPU is needed). Without FORCE_BUILD its setup would first look
# for a wheel on GitHub, which no lock names.
COPY containers/lock_transformer_engine.txt containers/
RUN uv pip install --system --no-cache --no-deps -r containers/lock_transformer_engine.txt \
    && CPATH=${CUDA_HOME}/../cudnn/include:${CUDA_HOME}/../nccl/include \
       NVTE_PYTORCH_FORCE_BUILD=TRUE MAX_JOBS=8 \
       uv pip install --system --no-cache --no-deps --no-build-isolation transformer-engine-torch==2.11.0

# Part of cache versions, of which every pod knows all.
COPY containers/lock_*.txt containers/
COPY pyproject.toml ./
COPY data_schemas data_schemas
COPY tasks tasks
COPY workflows workflows

ENV PYTHONPATH=/root HOME=/root PYTHONUNBUFFERED=1 DO_NOT_TRACK=1 MLFLOW_DISABLE_TELEMETRY=true \
    VLLM_NO_USAGE_STATS=1 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN useradd --uid 1000 --home-dir /root --no-create-home flyte && chown -R flyte:flyte /root
ARG COMMIT=
ENV EACHPROMPT_COMMIT=${COMMIT}
LABEL org.opencontainers.image.revision=${COMMIT}
USER 1000
