# The MLflow server of containers/compose.yaml: passwords, metadata in PostgreSQL, artifacts in S3.
#   docker build -f containers/mlflow.Dockerfile -t REGISTRY/mlflow:0.1.0 .
ARG BASE=python:3.11.9-slim-bookworm
FROM ${BASE}

RUN pip install --no-cache-dir uv==0.13.8
WORKDIR /root
COPY lock_cpu.txt ./
COPY containers/lock_stack.txt containers/
RUN uv pip install --system --no-cache --no-deps -r lock_cpu.txt \
    && uv pip install --system --no-cache --no-deps --require-hashes -r containers/lock_stack.txt
COPY containers/mlflow_server.sh ./
COPY containers/stack.py containers/
COPY containers/cluster/s3_*.json containers/cluster/

ENV PYTHONPATH=/root HOME=/tmp PYTHONUNBUFFERED=1 MLFLOW_DISABLE_TELEMETRY=true
CMD ["sh", "/root/mlflow_server.sh"]
# Only root may enter /root as it is.
RUN useradd --uid 1000 --home-dir /tmp --no-create-home mlflow && chmod -R a+rX /root
ARG COMMIT=
ENV EACHPROMPT_COMMIT=${COMMIT}
LABEL org.opencontainers.image.revision=${COMMIT}
USER 1000
