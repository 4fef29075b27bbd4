"""Uses `sparkgate mcp` with the protocol's Python SDK, over standard input and over HTTP, and prints what the tools returned.

Arguments: the program, the gateway's URL, its token, the URL of an HTTP server of the protocol, and the URIs of three applications: one
that ends, one that fails, and one that sleeps.
"""

import asyncio
import json
import sys
import time

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PROGRAM, GATEWAY, TOKEN, SERVER, GOOD, FAILS, SLEEPS = sys.argv[1:]
TERMINAL = {"FINISHED", "FAILED", "KILLED", "ERROR", "LOST"}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def stdio(token: str, *options: str) -> StdioServerParameters:
    # Neither files of the user nor another gateway's settings.
    environment = {"SPARKGATE_URL": GATEWAY, "SPARKGATE_TOKEN": token, "SPARKGATE_CONFIG": "/nonexistent/config.yaml"}
    return StdioServerParameters(command=PROGRAM, args=["mcp", *options], env=environment)


def described(tool) -> dict:
    return {"name": tool.name, **tool.annotations.model_dump(by_alias=True, exclude_none=True)}


async def call(client: Client, name: str, **arguments) -> dict:
    result = await client.call_tool(name, arguments)
    texts = [block.text for block in result.content]
    return {"isError": bool(result.is_error), "document": result.structured_content, "texts": texts}


async def ended(client: Client, id: str, state: str | None = None) -> dict:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        submission = (await call(client, "get_submission", id=id))["document"]["submission"]
        if submission["state"] in TERMINAL or submission["state"] == state:
            return submission
        await asyncio.sleep(0.2)
    raise TimeoutError(f"{id} has not ended: {submission}")


async def submit(client: Client, app: str, **fields) -> str:
    created = await call(client, "submit", request={"appResource": app, **fields})
    assert not created["isError"], created
    return created["document"]["submission"]["id"]


async def over_stdio() -> dict:
    found = {}
    async with Client(stdio(TOKEN)) as client:
        found["readOnly"] = [described(tool) for tool in (await client.list_tools()).tools]
    # The handshake of clients before 2026-07-28.
    async with Client(stdio(TOKEN), mode="legacy") as client:
        found["legacy"] = await call(client, "list_submissions", limit=1)
    async with Client(stdio("sg_wrong_token")) as client:
        found["refused"] = await call(client, "list_submissions")
    async with Client(stdio(TOKEN, "--allow-write")) as client:
        found["instructions"] = client.instructions
        found["all"] = [described(tool) for tool in (await client.list_tools()).tools]
        properties = {"spark.executor.instances": "1"}
        good = await submit(client, GOOD, name="good", appArgs=["x"], sparkProperties=properties, labels={"team": "data"})
        fails = await submit(client, FAILS, name="fails", appArgs=["y"], labels={"team": "data"})
        found["good"], found["failed"] = await ended(client, good), await ended(client, fails)
        found["listed"] = await call(client, "list_submissions", labels={"team": "data"}, states=["failed"])
        found["failure"] = await call(client, "explain_failure", id=fails)
        found["notWaiting"] = await call(client, "explain_waiting", id=fails)
        found["log"] = await call(client, "read_log", id=good, tail=1000)
        found["search"] = await call(client, "read_log", id=good, search="ARGUMENTS")
        found["compared"] = await call(client, "compare_submissions", a=good, b=fails)
        found["request"] = await call(client, "get_submission", id=good, include_request=True)
        found["usage"] = await call(client, "get_usage", group_by=["owner"])
        again = await call(client, "rerun", id=fails, patch={"appResource": GOOD, "appArgs": ["again"]})
        found["again"] = await ended(client, again["document"]["submission"]["id"])
        found["unknown"] = await call(client, "get_submission", id="driver-20260101000000-9999")
        found["invalid"] = await call(client, "submit", request={"appResource": GOOD, "labels": {"-": "x"}})
        found["dryRun"] = await call(client, "submit", request={"appResource": GOOD}, dry_run=True)
    return found


async def over_http() -> dict:
    found = {}
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
        async with Client(streamable_http_client(SERVER, http_client=http)) as client:
            found["tools"] = [tool.name for tool in (await client.list_tools()).tools]
            sleeps = await submit(client, SLEEPS, name="sleeps")
            await ended(client, sleeps, "RUNNING")
            found["beginning"] = await call(client, "get_submission", id=sleeps.removeprefix("driver-"))
            found["kill"] = await call(client, "kill", id=sleeps)
            found["killed"] = await ended(client, sleeps)
            found["failure"] = await call(client, "explain_failure", id=sleeps)
        async with Client(streamable_http_client(SERVER, http_client=http), mode="legacy") as client:
            found["legacy"] = await call(client, "get_submission", id=sleeps)
    async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as http:
        token = {"Authorization": f"Bearer {TOKEN}"}
        requests = {
            "known": token,
            "anonymous": {},
            "wrong": {"Authorization": "Bearer sg_wrong_token"},
            "rebound": {**token, "Host": "evil.example"},
            "page": {**token, "Origin": "https://evil.example"},
        }
        found["statuses"] = {name: (await http.post(SERVER, json=LIST, headers=more)).status_code for name, more in requests.items()}
    return found


async def main() -> None:
    print("RESULT", json.dumps({"stdio": await over_stdio(), "http": await over_http()}))


asyncio.run(main())
