"""Server-sent events (the HTML standard, 9.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """A message: its event's name and its data. `last_id` is the position after it."""

    event: str
    data: str
    last_id: str | None


class Reader:
    """Parses a stream."""

    def __init__(self, last_id: str | None = None) -> None:
        self.last_id = last_id
        self._rest = b""
        self._event = ""
        self._data: list[str] = []
        self._id = last_id

    def take(self, chunk: bytes) -> list[Message]:
        """Returns the messages that end in a piece of the stream."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        messages = []
        for raw in lines:
            line = raw.rstrip(b"\r").decode(errors="replace")
            if line:
                self._field(line)
                continue
            # The end of a message. One without data only moves the position.
            self.last_id = self._id
            if self._data:
                messages.append(Message(self._event or "message", "\n".join(self._data), self.last_id))
            self._event, self._data = "", []
        return messages

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
