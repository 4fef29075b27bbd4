"""The URL of a gateway."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from sparkgate.errors import ConfigurationError


@dataclass(frozen=True)
class Server:
    """The gateway's base URL, to which `/v1` is appended."""

    url: str

    @classmethod
    def parse(cls, text: str) -> Server:
        """Parses a URL whose scheme is optional, as in curl: `gateway:6066`."""
        given = text.strip()
        wrong = ConfigurationError(
            f"{given!r} is not the URL of a gateway: expected http://host:port or https://host, "
            "with a path if a proxy serves the gateway below one"
        )
        if any(ord(letter) <= ord(" ") for letter in given):
            raise wrong
        try:
            parts = urlsplit(given if "://" in given else f"http://{given}")
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise wrong from None
        scheme = parts.scheme.lower()
        if scheme not in ("http", "https") or not host or "@" in parts.netloc or parts.query or parts.fragment:
            raise wrong
        path = parts.path.rstrip("/")
        if path.endswith("/v1"):
            raise ConfigurationError(f"{given} ends in /v1, which this client adds itself: leave it out")
        return cls(f"{scheme}://{parts.netloc}{path}")

    @property
    def is_https(self) -> bool:
        """Whether requests are encrypted."""
        return self.url.startswith("https:")

    @property
    def is_loopback(self) -> bool:
        """Whether the gateway runs on this machine."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def is_private(self) -> bool:
        """Whether only the server can read what is sent to it."""
        return self.is_https or self.is_loopback

    @property
    def port(self) -> int:
        """The port."""
        return urlsplit(self.url).port or (443 if self.is_https else 80)

    def __str__(self) -> str:
        return self.url
