"""An OpenAI-compatible endpoint in this process, which a test lets answer or misbehave."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from data_schemas.rows import Message, Role
from tests.processes import serving

NOBODY = "http://127.0.0.1:9/v1"
"""Where nothing listens, and no test is given the port."""


def prompt(text):
    return (Message(role=Role.USER, content=text),)


def completion(text):
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


def send(handler, body, status=200):
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def endpoint(behave, note_look=lambda: None):
    """Serve POSTs: `behave(handler, request body, number of the request)` answers them.

    Args:
        behave: answers a POST.
        note_look: called at every HEAD, which is answered with 501.
    """
    numbers = iter(range(10_000))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                behave(self, asked, next(numbers))
            except OSError:
                self.close_connection = True  # the client has hung up

        def do_HEAD(self):
            note_look()
            self.send_error(501)

        def log_message(self, *_):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
