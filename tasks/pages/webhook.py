"""Notify a chat of how a retraining ended: one POST of {"text": ...} to a webhook.

Slack, Mattermost, Rocket.Chat and Google Chat take this as it is. The address is a secret: it is
read from the environment of the pod, and is in no message, input or statement. What cannot be
delivered changes nothing but is named.
"""

import http.client
import json
import urllib.error
import urllib.request

WEBHOOK = "EACHPROMPT_WEBHOOK"
"""Variable with the address; unset = nobody is notified."""
_TIMEOUT_S = 30.0


def post(address: str, text: str) -> str:
    """Post a text; return why it was not delivered, '' if it was or nobody is to be notified.

    Args:
        address: http or https URL; '' = nobody is to be notified.
        text: for people; its first words say what happened.
    """
    if not address:
        return ""
    if not address.startswith(("http://", "https://")):
        return f"{WEBHOOK} is no http or https address"
    body = json.dumps({"text": text}).encode()
    try:
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
            return ""
    except urllib.error.HTTPError as error:
        with error:  # its text names the address
            return f"{WEBHOOK} answered with status {error.code}"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{WEBHOOK} did not answer ({type(error).__name__})"
