"""PostgreSQL, an MLflow server with a password and S3 on this machine, without containers.

    python containers/stack.py up           start what does not run, and print how to use it
    python containers/stack.py down         stop all of it; the data stays
    python containers/stack.py env [WHO]    print the variables only: eval "$(... env auditor)"
    python containers/stack.py s3|mlflow    the rights of the identities, inside of compose.yaml

WHO is one of the identities of FLYTE.md: pods (without WHO), auditor or gc, or admin. Each has the
rights of that table: S3's are the policies in cluster/, MLflow's are GRANTS.

Everything lies in one folder (EACHPROMPT_STACK, default .stack): data, logs, generated credentials,
the packages of lock_stack.txt. All services listen on 127.0.0.1 only. PostgreSQL's programs come
from the system (apt-get install postgresql), SeaweedFS's from PyPI, pinned by hash.
"""

import base64
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOST = "127.0.0.1"
START_S = 600.0
"""Patience for a service on a busy machine; MLflow creates its tables on the first start."""
AUTH_CACHE_S = 60
"""How long MLflow trusts a password that it has checked; it forgets one that is changed at once."""
CLIENTS = ("AWS_", "MLFLOW_")
"""Variables of clients. No service inherits them: SeaweedFS makes an administrator of AWS_*."""
PROGRAMS = ("initdb", "postgres", "pg_ctl", "pg_isready", "createdb", "psql")
BUCKETS = ("eachprompt", "mlflow")
ADMIN = "admin"
PODS = "pods"
GRANTS: dict[str, str] = {PODS: "", "auditor": "READ", "gc": "EDIT"}
"""Identity of the guide's table -> its right on all experiments and registered models of MLflow.

Pods have none: they create the experiment and their models, and own what they created.
"""
POLICIES = ROOT / "containers" / "cluster"
"""Holds s3_NAME.json, the rights of an identity in S3."""


class StackError(Exception):
    """A service cannot be started; the message says what to do."""


@dataclass(frozen=True)
class Access:
    """Ports and credentials of a stack, generated once."""

    postgres_port: int
    mlflow_port: int
    s3_port: int
    weed_ports: tuple[int, int, int]
    """Ports of SeaweedFS's master, volume and filer; each also uses the port 10,000 above."""
    postgres_password: str
    mlflow_password: str
    s3_access_key: str
    s3_secret_key: str
    secrets: dict[str, str]
    """Identity -> its password in MLflow and its secret key in S3, where its key is its name."""

    @property
    def mlflow(self) -> str:
        """URL of the MLflow server."""
        return f"http://{HOST}:{self.mlflow_port}"

    @property
    def s3(self) -> str:
        """URL of the S3 service."""
        return f"http://{HOST}:{self.s3_port}"

    def variables(self, who: str = PODS) -> dict[str, str]:
        """Return what a client needs that is one of the identities, or the administrator.

        Raises:
            StackError: there is no such identity.
        """
        if who not in (ADMIN, *GRANTS):
            raise StackError(f"there is no identity {who!r}: {', '.join([*GRANTS, ADMIN])}")
        is_admin = who == ADMIN
        return {
            "MLFLOW_TRACKING_URI": self.mlflow,
            "MLFLOW_TRACKING_USERNAME": who,
            "MLFLOW_TRACKING_PASSWORD": self.mlflow_password if is_admin else self.secrets[who],
            "AWS_ENDPOINT_URL": self.s3,
            "AWS_ACCESS_KEY_ID": self.s3_access_key if is_admin else who,
            "AWS_SECRET_ACCESS_KEY": self.s3_secret_key if is_admin else self.secrets[who],
            "AWS_DEFAULT_REGION": "us-east-1",
        }


def s3_rights(access_key: str, secret_key: str, own: Mapping[str, str]) -> str:
    """Return SeaweedFS's configuration of the administrator and the identities of the table.

    Args:
        access_key: of the administrator.
        secret_key: likewise.
        own: identity -> its secret key; its access key is its name.
    """
    key = {"accessKey": access_key, "secretKey": secret_key}
    identities: list[dict[str, object]] = [
        {"name": ADMIN, "credentials": [key], "actions": ["Admin"]}
    ]
    policies = []
    for who in GRANTS:
        credentials = {"accessKey": who, "secretKey": own[who]}
        identities.append({"name": who, "credentials": [credentials], "policyNames": [who]})
        policies.append({"name": who, "content": (POLICIES / f"s3_{who}.json").read_text()})
    return json.dumps({"identities": identities, "policies": policies})


def grant_in_mlflow(server: str, password: str, own: Mapping[str, str]) -> None:
    """Create the users of the table in MLflow, with their rights; once more changes nothing.

    Args:
        server: URL.
        password: of its administrator.
        own: identity -> its password.

    Raises:
        StackError: it refuses.
    """
    for who, right in GRANTS.items():
        account = {"username": who, "password": own[who]}
        _administer(server, password, "2.0/mlflow/users/create", account)
        for kind in ("experiment", "registered_model") if right else ():
            grant = {"username": who, "resource_type": kind, "resource_id": "*"}
            grant["permission"] = right
            _administer(server, password, "3.0/mlflow/users/permissions/grant", grant)


def _administer(server: str, password: str, path: str, values: Mapping[str, str]) -> None:
    token = base64.b64encode(f"{ADMIN}:{password}".encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {token}"}
    request = urllib.request.Request(f"{server}/api/{path}", json.dumps(values).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60):
            return
    except urllib.error.HTTPError as error:
        with error:
            answer = error.read().decode(errors="replace")
        if "RESOURCE_ALREADY_EXISTS" not in answer:
            raise StackError(f"MLflow refuses {path}: {answer[:300]}") from error


def environment_of(pid: int, patience_s: float = 2.0) -> bytes:
    """Read the variables of a process, NAME=value with zeros between.

    Empty for a moment after `Popen` returns: exec closes the pipe that it waits for first, and
    lays out the environment of the new program then. A thread of the kernel has none at all.

    Raises:
        OSError: there is no such process.
    """
    until = time.monotonic() + patience_s
    place = Path(f"/proc/{pid}/environ")
    while not (variables := place.read_bytes()) and time.monotonic() < until:
        time.sleep(0.01)
    return variables


class Stack:
    """The services of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        # PostgreSQL's own user, which root has to switch to, passes through.
        self.folder.chmod(0o711)
        self.access = self._access()

    def up(self) -> None:
        """Start every service that does not run."""
        self._install()
        self.start_postgres()
        self.start_s3()
        self.start_mlflow()

    def down(self) -> None:
        """Stop every service, the ones that use others first."""
        for name in ("mlflow", "s3", "postgres"):
            self.stop(name)

    def start_postgres(self) -> None:
        """Start PostgreSQL, and create its cluster and database on the first start."""
        programs, data = _postgres_programs(), self.folder / "postgres"
        user = _unprivileged_user()
        if user and not _succeeds(["test", "-x", self.folder], user=user):
            raise StackError(
                f"PostgreSQL does not run as root, and user {user} may not enter {self.folder}. "
                "Set EACHPROMPT_STACK to another folder, such as /var/lib/eachprompt."
            )
        if not (data / "PG_VERSION").exists():
            shutil.rmtree(data, ignore_errors=True)
            data.mkdir(mode=0o700)
            if user:
                shutil.chown(data, user)
            initialise = [programs / "initdb", "-D", data, "-U", "eachprompt", "-E", "UTF8"]
            _run([*initialise, "--auth=trust", "--locale=C"], user=user)
            settings = f"listen_addresses='{HOST}'\nunix_socket_directories='{data}'\n"
            with (data / "postgresql.conf").open("a") as config:
                config.write(settings)
        port = self.access.postgres_port
        server = [programs / "postgres", "-D", data, "-p", str(port)]
        # After a crash it listens, and refuses, until it has recovered.
        ready = [programs / "pg_isready", "--quiet", "-h", HOST, "-p", str(port)]
        self._start("postgres", server, {}, lambda: _succeeds(ready), user=user)
        self._secure_postgres(programs, data, user)

    def _secure_postgres(self, programs: Path, data: Path, user: str) -> None:
        """Set the password and create the database while only the socket's owner may enter."""
        rules = data / "pg_hba.conf"
        if "scram-sha-256\n" in rules.read_text():
            return
        here = ["-h", data, "-p", str(self.access.postgres_port), "-U", "eachprompt"]
        password = f"ALTER ROLE eachprompt PASSWORD '{self.access.postgres_password}'"
        _until(lambda: _succeeds([programs / "psql", *here, "-c", password, "postgres"], user=user))
        if not _succeeds([programs / "psql", *here, "-c", "", "mlflow"], user=user):
            _run([programs / "createdb", *here, "mlflow"], user=user)
        rules.write_text(f"host all all {HOST}/32 scram-sha-256\nlocal all all scram-sha-256\n")
        _run([programs / "pg_ctl", "-D", data, "reload"], user=user)

    def start_s3(self) -> None:
        """Start SeaweedFS and create the buckets."""
        access, data = self.access, self.folder / "s3"
        data.mkdir(exist_ok=True)
        rights = s3_rights(access.s3_access_key, access.s3_secret_key, access.secrets)
        config = self._secret("s3.json", rights)
        master, volume, filer = (str(port) for port in access.weed_ports)
        command = [self._program("weed"), "server", f"-dir={data}", f"-ip={HOST}"]
        command += [f"-ip.bind={HOST}", f"-master.port={master}", f"-volume.port={volume}"]
        command += ["-filer", f"-filer.port={filer}", "-s3", f"-s3.port={access.s3_port}"]
        command += [f"-s3.config={config}", "-volume.max=100", "-master.volumeSizeLimitMB=1024"]
        # No usage statistics, and no services on fixed ports.
        command += ["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        self._start("s3", command, {}, self._has_buckets)

    def start_mlflow(self) -> None:
        """Start the MLflow server on PostgreSQL, with artifacts in S3 and a password."""
        access = self.access
        database = (
            f"postgresql+psycopg://eachprompt:{access.postgres_password}"
            f"@{HOST}:{access.postgres_port}/mlflow"
        )
        settings = "[mlflow]\ndefault_permission = NO_PERMISSIONS\nadmin_username = admin\n"
        settings += f"database_uri = {database}\nadmin_password = {access.mlflow_password}\n"
        settings += "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
        # Without it every request hashes the password, which takes 80 ms of CPU.
        settings += f"auth_cache_ttl_seconds = {AUTH_CACHE_S}\n"
        secret = self._secret("flask.key", secrets.token_urlsafe(32), keep=True)
        variables = access.variables(ADMIN) | {
            "PYTHONPATH": str(self.folder / "packages"),
            "MLFLOW_AUTH_CONFIG_PATH": str(self._secret("mlflow.ini", settings)),
            "MLFLOW_FLASK_SERVER_SECRET_KEY": secret.read_text(),
            "MLFLOW_BACKEND_STORE_URI": database,  # not on the command line, which anybody can list
            "MLFLOW_S3_ENDPOINT_URL": access.s3,
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }
        command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth"]
        command += ["--host", HOST, "--port", str(access.mlflow_port), "--workers", "1"]
        command += ["--serve-artifacts", "--artifacts-destination", "s3://mlflow/artifacts"]
        self._start("mlflow", command, variables, lambda: _answers(f"{access.mlflow}/health"))
        grant_in_mlflow(access.mlflow, access.mlflow_password, access.secrets)

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        """Stop a service and wait for its end; PostgreSQL ends its connections."""
        pid = self.pid(name)
        if pid is None:
            return
        children = _children(pid)
        if name == "postgres" and number == signal.SIGTERM:
            os.kill(pid, signal.SIGINT)  # its fast shutdown
        else:
            os.killpg(pid, number)
        _until(lambda: self.pid(name) is None)
        # PostgreSQL's own ones end after it, and a new server refuses to start before.
        _until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))

    def pid(self, name: str) -> int | None:
        """Return the process of a service, None if it does not run."""
        try:
            pid = int((self.folder / f"{name}.pid").read_text())
            with suppress(ChildProcessError):  # started by another process
                os.waitpid(pid, os.WNOHANG)  # PostgreSQL takes a zombie for a running server
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            variables = environment_of(pid)
        except (OSError, ValueError):
            return None
        # A number may have been given to another process since.
        ours = f"EACHPROMPT_STACK={self.folder}".encode() in variables
        return pid if ours and status != "Z" else None

    def _start(
        self,
        name: str,
        command: Sequence[str | Path],
        variables: Mapping[str, str],
        ready: Callable[[], bool],
        user: str = "",
    ) -> None:
        if self.pid(name) is None:
            own = {name: one for name, one in os.environ.items() if not name.startswith(CLIENTS)}
            environment = own | variables | {"EACHPROMPT_STACK": str(self.folder)}
            with (self.folder / f"{name}.log").open("ab") as log:
                process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    user=user or None,
                )
            (self.folder / f"{name}.pid").write_text(str(process.pid))
            process.returncode = 0  # it goes on after this object; nobody waits for it
        _until(lambda: ready() or self._refuse_ended(name))

    def _refuse_ended(self, name: str) -> bool:
        if self.pid(name) is None:
            log = self.folder / f"{name}.log"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
            raise StackError(f"{name} ended as it was started; {log} ends with:\n{tail}")
        return False

    def _has_buckets(self) -> bool:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        access = self.access
        client = boto3.client(
            "s3",
            endpoint_url=access.s3,
            aws_access_key_id=access.s3_access_key,
            aws_secret_access_key=access.s3_secret_key,
            region_name="us-east-1",
        )
        try:
            there = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
            for name in set(BUCKETS) - there:
                client.create_bucket(Bucket=name)
            # The volume servers register after the S3 service answers; an empty object needs none.
            client.put_object(Bucket=BUCKETS[0], Key=".ready", Body=b"ready")
            client.get_object(Bucket=BUCKETS[0], Key=".ready")["Body"].read()
        except (BotoCoreError, ClientError):
            return False
        return True

    def _access(self) -> Access:
        path = self.folder / "access.json"
        if not path.exists():
            ports = _free_ports(6)
            access = Access(
                *ports[:3],
                weed_ports=(ports[3], ports[4], ports[5]),
                postgres_password=secrets.token_urlsafe(24),
                mlflow_password=secrets.token_urlsafe(24),
                s3_access_key=secrets.token_hex(10),
                s3_secret_key=secrets.token_urlsafe(30),
                secrets={who: secrets.token_urlsafe(24) for who in GRANTS},
            )
            self._secret("access.json", json.dumps(asdict(access)))
        values = json.loads(path.read_text())
        if "secrets" not in values:
            raise StackError(f"{self.folder} has one identity only; remove it and start anew")
        return Access(**values | {"weed_ports": tuple(values["weed_ports"])})

    def _secret(self, name: str, text: str, *, keep: bool = False) -> Path:
        """Write a file that only its owner reads."""
        if not ((path := self.folder / name).exists() and keep):
            path.touch(mode=0o600)
            path.write_text(text)
        return path

    def _install(self) -> None:
        """Install the packages of lock_stack.txt, whose hashes pip checks, beside the project's."""
        lock, target = ROOT / "containers" / "lock_stack.txt", self.folder / "packages"
        stamp = target / ".lock"
        if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
            return
        shutil.rmtree(target, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
        pip += ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--target", str(target)]
        _run([*pip, "-r", lock])
        stamp.write_bytes(lock.read_bytes())

    def _program(self, name: str) -> Path:
        paths = sorted((self.folder / "packages").rglob(name))
        for path in paths:
            if path.is_file() and os.access(path, os.X_OK):
                return path
        raise StackError(f"{name} is not in {self.folder}/packages; remove that folder")


def _postgres_programs() -> Path:
    places = [Path(place) for place in os.environ.get("PATH", "").split(os.pathsep)]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if all((place / name).exists() for name in PROGRAMS):
            return place
    raise StackError("PostgreSQL is not installed: apt-get install postgresql, or brew install it")


def _unprivileged_user() -> str:
    """Return the user that PostgreSQL runs as: it refuses to run as root."""
    users = {entry.pw_name for entry in pwd.getpwall()}
    return "" if os.geteuid() != 0 else "postgres" if "postgres" in users else "nobody"


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def _free_ports(count: int) -> list[int]:
    """Return ports that are free now, as are those 10,000 above them."""
    ports: list[int] = []
    while len(ports) < count:
        port = secrets.randbelow(10_000) + 20_000
        if port not in ports and not _listens(port) and not _listens(port + 10_000):
            ports.append(port)
    return ports


def _listens(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(5)
        return client.connect_ex((HOST, port)) == 0


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status == 200
    except OSError:
        return False


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_S
    while not true():
        if time.monotonic() > deadline:
            raise StackError(f"nothing happened within {START_S:.0f} s; see the logs")
        time.sleep(0.2)


def _run(command: Sequence[str | Path], user: str = "") -> None:
    process = subprocess.run(command, user=user or None, cwd="/", capture_output=True, check=False)
    if process.returncode != 0:
        raise StackError(f"{command[0]}: {(process.stderr or process.stdout).decode().strip()}")


def _succeeds(command: Sequence[str | Path], user: str = "") -> bool:
    process = subprocess.run(command, user=user or None, cwd="/", capture_output=True, check=False)
    return process.returncode == 0


def _exports(stack: Stack, who: str = PODS) -> str:
    variables = stack.access.variables(who)
    return "\n".join(f"export {name}='{text}'" for name, text in variables.items())


def _rights_in_containers(service: str) -> None:
    """Give the identities of compose.yaml their rights; its variables have the passwords."""
    own = {who: os.environ[f"{who.upper()}_PASSWORD"] for who in GRANTS}
    if service == "s3":
        keys = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        sys.stdout.write(s3_rights(*keys, own))
        return
    server = os.environ["MLFLOW_SERVER"]
    _until(lambda: _answers(f"{server}/health"))
    grant_in_mlflow(server, os.environ["MLFLOW_ADMIN_PASSWORD"], own)


def main(arguments: Sequence[str]) -> int:
    """Run a command."""
    try:
        if arguments in (["s3"], ["mlflow"]):
            _rights_in_containers(*arguments)
            return 0
        stack = Stack(Path(os.environ.get("EACHPROMPT_STACK", ".stack")))
        match list(arguments):
            case ["up"]:
                stack.up()
                sys.stdout.write(
                    f"MLflow  {stack.access.mlflow}\nS3      {stack.access.s3}\n\n"
                    f"{_exports(stack)}\n\nmake run ARGS='--store s3://eachprompt/runs'\n"
                )
            case ["down"]:
                stack.down()
            case ["env", *who] if len(who) < 2:
                sys.stdout.write(f"{_exports(stack, *who)}\n")
            case _:
                sys.stderr.write(f"{__doc__}\n")
                return 2
    except StackError as error:
        sys.stderr.write(f"StackError: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
