"""The token of a login (`sparkgate login`), which is renewed before it ends."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx

from sparkgate import _files
from sparkgate._connection import Context
from sparkgate._server import Server
from sparkgate.errors import ConfigurationError, GatewayUnreachable

#: A token that ends so soon is renewed before it is used.
_SOON = timedelta(seconds=30)


class LoginToken:
    """The access token of a login in `credentials.yaml`, beside the contexts."""

    blocks = True

    def __init__(self, path: Path, context: Context, ca_file: Path | None) -> None:
        self._path = path
        self._context = context
        self._ca_file = ca_file
        self.origin = f"the login of the context `{context.name}`"

    @classmethod
    def find(cls, config: Path, context: Context, ca_file: Path | None) -> LoginToken | None:
        """Returns the login of a context, if its user has logged in to its gateway."""
        token = cls(config.with_name("credentials.yaml"), context, ca_file)
        return token if token._read()[1] else None

    def current(self) -> str:
        """Returns an access token that doesn't end soon.

        Of several processes one renews it, because a provider may accept a refresh token only once.
        """
        login = self._read()[1]
        if not self._ends_before(login, _SOON):
            return self._access_token(login)
        with _files.locked(self._path.with_name("credentials.lock")):
            document, login = self._read()
            if not self._ends_before(login, _SOON):
                return self._access_token(login)
            try:
                login.update(self._renewed(login))
            except (httpx.HTTPError, GatewayUnreachable) as error:
                if self._ends_before(login, timedelta(0)):
                    raise GatewayUnreachable(f"renewing the login at {login.get('issuer')}: {error}") from error
                # The token is still good for a few seconds.
                return self._access_token(login)
            _files.write_private(self._path, document)
            return self._access_token(login)

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the document of all logins, and the login of the context in it; empty if there is none."""
        document = _files.parse(self._path, _files.read_secret(self._path) or "")
        logins = document.get("logins")
        login = logins.get(self._context.name) if isinstance(logins, dict) else None
        try:
            is_its = isinstance(login, dict) and Server.parse(str(login.get("server"))) == self._context.server
        except ConfigurationError:
            is_its = False
        return document, login if is_its and isinstance(login, dict) else {}

    def _ended(self, reason: str = "") -> ConfigurationError:
        name = self._context.name
        return ConfigurationError(f"the login of the context `{name}` has ended{reason}: run `sparkgate login --context {name}`")

    def _access_token(self, login: dict[str, Any]) -> str:
        token = login.get("accessToken")
        if not isinstance(token, str) or not token:
            raise self._ended()
        return token

    def _ends_before(self, login: dict[str, Any], margin: timedelta) -> bool:
        end = login.get("expiresAt")
        if not isinstance(end, str) or not end:
            return False
        try:
            # Python 3.10 reads neither `Z` nor nanoseconds.
            at = datetime.fromisoformat(end[:19]).replace(tzinfo=timezone.utc)
        except ValueError:
            return True
        return at - margin <= datetime.now(timezone.utc)

    def _renewed(self, login: dict[str, Any]) -> dict[str, Any]:
        """Exchanges the refresh token for new tokens (OpenID Connect Discovery 1.0; RFC 6749, 6)."""
        refresh, issuer = login.get("refreshToken"), str(login.get("issuer"))
        if not refresh:
            if self._ends_before(login, timedelta(0)):
                raise self._ended()
            return {}
        context = ssl.create_default_context(cafile=None)
        if self._ca_file:
            context.load_verify_locations(self._ca_file)
        with httpx.Client(verify=context, timeout=30) as http:
            url = f"{_private(issuer).rstrip('/')}/.well-known/openid-configuration"
            metadata = http.get(url).raise_for_status().json()
            # Otherwise another provider's tokens could be obtained in this one's name (RFC 8414, 3.3).
            if str(metadata.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
                raise self._ended(f" (it can't be renewed: {issuer} says that it is another provider)")
            form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": str(login.get("clientId"))}
            now = datetime.now(timezone.utc)
            answer = http.post(_private(str(metadata.get("token_endpoint"))), data=form)
        if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise GatewayUnreachable(f"HTTP {answer.status_code}")
        grant = answer.json()
        if not answer.is_success or not grant.get("access_token"):
            raise self._ended(f" (it can't be renewed: {grant.get('error', 'no token')})")
        # A refresh token that isn't replaced stays valid.
        new = {"accessToken": grant["access_token"], "refreshToken": grant.get("refresh_token") or refresh}
        if isinstance(lasts := grant.get("expires_in"), int):
            new["expiresAt"] = (now + timedelta(seconds=lasts)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return new


def _private(url: str) -> str:
    """Returns the URL of a provider, to which tokens are sent."""
    if "://" not in url or not Server.parse(url).is_private:
        raise ConfigurationError(f"no token is sent to {url}, because anyone on the way could read it there")
    return url
