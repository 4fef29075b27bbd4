"""Which gateway is called, and with which token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from dev import Dev
from server import SUBMISSION, Handler, Server

from sparkgate import Client, ConfigurationError, Unauthenticated
from sparkgate._server import Server as Address
from sparkgate._transport import Settings

CONTEXTS = """
current: prod
contexts:
  prod: {server: https://gate.example/spark/, token: of-prod}
  laptop:
    server: localhost:6066
    tokenFile: laptop.token
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    config = tmp_path / "config.yaml"
    config.write_text(CONTEXTS)
    config.chmod(0o600)
    token = tmp_path / "laptop.token"
    token.write_text("of-laptop\n")
    token.chmod(0o600)
    return {"SPARKGATE_CONFIG": str(config), "SPARKGATE_DEV_DIR": str(tmp_path / "dev")}


def found(
    environ: dict[str, str], url: str | None = None, token: str | None = None, context: str | None = None
) -> tuple[str, str | None]:
    client = Client(url, token, context, environ=environ)
    settings: Settings = client._settings
    return client.url, settings.token.current() if settings.token else None


PROD = ("https://gate.example/spark", "of-prod")
LAPTOP = ("http://localhost:6066", "of-laptop")


def test_the_first_setting_decides(environ: dict[str, str]) -> None:
    assert found({}) == ("http://127.0.0.1:6066", None)
    assert found(environ) == PROD
    assert found(environ, context="laptop") == LAPTOP
    assert found({**environ, "SPARKGATE_CLIENT_CONTEXT": "laptop"}) == LAPTOP
    # What a context has is for its own URL.
    assert found({**environ, "SPARKGATE_URL": "https://other.example"}) == ("https://other.example", None)
    assert found({**environ, "SPARKGATE_URL": "https://gate.example/spark"}) == PROD
    assert found({**environ, "SPARKGATE_URL": "https://other.example"}, context="laptop") == LAPTOP
    assert found({**environ, "SPARKGATE_URL": "https://other.example"}, url="https://gate.example/spark/") == PROD
    assert found(environ, url="https://other.example", context="laptop") == ("https://other.example", None)
    assert found({**environ, "SPARKGATE_TOKEN": "of-env"}) == (PROD[0], "of-env")
    assert found({**environ, "SPARKGATE_TOKEN": "of-env"}, token="argument") == (PROD[0], "argument")
    file = str(Path(environ["SPARKGATE_CONFIG"]).with_name("laptop.token"))
    assert found({**environ, "SPARKGATE_TOKEN_FILE": file}) == (PROD[0], "of-laptop")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:6066/", "http://127.0.0.1:6066"),
        ("gateway:6066", "http://gateway:6066"),
        ("HTTPS://spark.example.org/gate/", "https://spark.example.org/gate"),
        ("[::1]:6066", "http://[::1]:6066"),
    ],
)
def test_the_scheme_of_a_url_is_optional(text: str, url: str) -> None:
    assert str(Address.parse(text)) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://",
        "spark://gateway:6066",
        "http://me:word@gateway",
        "gateway?x=1",
        "a b",
        "/v1",
        "http://gateway/v1",
        "gateway:x",
    ],
)
def test_what_is_no_url_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        Client(text, environ={})


def test_a_token_is_sent_over_https_or_to_this_machine_only(environ: dict[str, str]) -> None:
    for url in ("http://gateway.example:6066", "gateway:6066"):
        with pytest.raises(ConfigurationError, match="anyone on the way could read it"):
            Client(url, "s3cret", environ={})
        with pytest.raises(ConfigurationError, match="anyone on the way could read it"):
            Client(url, environ={"SPARKGATE_TOKEN": "s3cret"})
        assert found({}, url=url)[1] is None
    for url in ("https://gateway.example", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost"):
        assert found({}, url=url, token="s3cret")[1] == "s3cret"
    assert "s3cret" not in repr(Client("http://localhost", "s3cret", environ={}))


def test_wrong_settings_are_refused_without_a_secret(environ: dict[str, str]) -> None:
    config = Path(environ["SPARKGATE_CONFIG"])
    with pytest.raises(ConfigurationError, match="it has laptop, prod"):
        Client(context="test", environ=environ)
    for arguments in ({"url": ""}, {"context": " "}, {"token": " "}, {"token": "a b"}, {"token": "ü"}):
        with pytest.raises(ConfigurationError):
            Client(**arguments, environ={})
    with pytest.raises(ConfigurationError, match="not both"):
        Client(token="a", token_file="b", environ={})
    with pytest.raises(ConfigurationError, match="can't be used"):
        Client("https://gate.example", ca_file=config, environ={})
    config.chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        Client(environ=environ)
    for text in (
        "contexts: [s3cret",
        "contexts:\n  prod: {server: 'ftp://s3cret'}",
        "contexts:\n  prod: {server: a, tokn: s3cret}",
    ):
        config.write_text(text)
        with pytest.raises(ConfigurationError) as wrong:
            Client(context="prod", environ=environ)
        assert "s3cret" not in str(wrong.value)


def test_a_token_file_is_read_again_for_each_request(environ: dict[str, str]) -> None:
    server = Server(lambda request: request.reply(200, SUBMISSION))
    file = Path(environ["SPARKGATE_CONFIG"]).with_name("laptop.token")
    with Client(server.url, token_file=file, environ={}) as client:
        client.get("driver-1")
        file.write_text("renewed")
        client.get("driver-1")
        file.chmod(0o604)
        with pytest.raises(ConfigurationError, match="chmod 600"):
            client.get("driver-1")
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer of-laptop", "Bearer renewed"]
    server.shutdown()


def test_a_login_is_renewed_before_it_ends(environ: dict[str, str]) -> None:
    def answer(request: Handler) -> None:
        if request.path.startswith("/.well-known"):
            return request.reply(200, {"issuer": server.url, "token_endpoint": f"{server.url}/token"})
        if b"refresh_token=first" in request.body:
            return request.reply(200, {"access_token": "new", "refresh_token": "second", "expires_in": 3600})
        return request.reply(400, {"error": "invalid_grant"})

    server = Server(answer)
    credentials = Path(environ["SPARKGATE_CONFIG"]).with_name("credentials.yaml")

    def log_in(server_of_login: str, ends: timedelta, refresh: str) -> None:
        login = {
            "server": server_of_login,
            "issuer": server.url,
            "clientId": "cli",
            "accessToken": "old",
            "refreshToken": refresh,
            "expiresAt": (datetime.now(timezone.utc) + ends).isoformat().replace("+00:00", "Z"),
        }
        credentials.write_text(json.dumps({"logins": {"prod": login, "other": login}}))
        credentials.chmod(0o600)

    log_in("https://gate.example/spark", timedelta(minutes=5), "first")
    assert found(environ) == (PROD[0], "old")
    log_in("https://gate.example/spark", timedelta(seconds=20), "first")
    assert found(environ) == (PROD[0], "new")
    assert (found(environ)[1], len(server.requests)) == ("new", 2)
    assert "other:" in credentials.read_text()
    assert "refreshToken: second" in credentials.read_text()
    assert credentials.stat().st_mode & 0o777 == 0o600
    log_in("https://gate.example/spark", timedelta(seconds=-1), "used")
    with pytest.raises(ConfigurationError, match=r"invalid_grant\): run `sparkgate login --context prod`"):
        found(environ)
    # The login of another gateway isn't used.
    log_in("https://other.example", timedelta(minutes=5), "first")
    assert found(environ) == PROD
    server.shutdown()


@pytest.fixture(scope="module")
def closed() -> Iterator[Dev]:
    dev = Dev("--require-token")
    yield dev
    dev.stop()


def test_the_token_of_dev_is_found_and_a_wrong_one_is_named(closed: Dev) -> None:
    with Client(closed.url, environ={"SPARKGATE_DEV_DIR": str(closed.dir / "dev")}) as client:
        assert client.me().tenants
    for environ, says in (
        ({"SPARKGATE_DEV_DIR": "/nonexistent"}, "no token was sent"),
        ({"SPARKGATE_TOKEN": "wrong"}, "the token is from SPARKGATE_TOKEN"),
    ):
        with Client(closed.url, environ=environ) as client, pytest.raises(Unauthenticated, match=says) as refused:
            client.me()
        assert refused.value.request_id
