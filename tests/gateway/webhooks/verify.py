"""Verifies a message on each line, and prints its event, or null."""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

for line in sys.stdin:
    message = json.loads(line)
    try:
        event = Webhook(message["secret"]).verify(message["body"], message["headers"])
    except WebhookVerificationError:
        event = None
    print(json.dumps(event))
