"""What the generated models have in common."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A JSON document of the gateway. Fields that a newer gateway adds are ignored."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore")


class OpenEnum(str, Enum):
    """A list of values that a newer gateway may extend: an unknown value is kept as it is, and compares as a text."""

    @classmethod
    def _missing_(cls, value: object) -> Any:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = value
        member._value_ = value
        return member

    def __str__(self) -> str:
        return str(self.value)
