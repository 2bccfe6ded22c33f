# Entry point of the MLflow image. Reads MLFLOW_BACKEND_STORE_URI, MLFLOW_ADMIN_PASSWORD,
# MLFLOW_FLASK_SERVER_SECRET_KEY, the passwords of the identities and the credentials of S3; none of
# them is on a command line.
set -eu
umask 077
cat > /tmp/auth.ini <<END
[mlflow]
default_permission = NO_PERMISSIONS
database_uri = $MLFLOW_BACKEND_STORE_URI
admin_username = admin
admin_password = $MLFLOW_ADMIN_PASSWORD
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
auth_cache_ttl_seconds = 60
END
export MLFLOW_AUTH_CONFIG_PATH=/tmp/auth.ini
python - <<END
import os, boto3
client = boto3.client("s3", endpoint_url=os.environ["MLFLOW_S3_ENDPOINT_URL"])
there = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
for name in {"mlflow", "eachprompt"} - there:
    client.create_bucket(Bucket=name)
END
# The users of FLYTE.md's table, as soon as the server answers
MLFLOW_SERVER=http://127.0.0.1:5000 python /root/containers/stack.py mlflow &
exec mlflow server --app-name basic-auth --host 0.0.0.0 --port 5000 --workers 2 \
    --serve-artifacts --artifacts-destination s3://mlflow/artifacts
