"""What Airflow asks a provider for."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml


def get_provider_info() -> dict[str, Any]:
    """Returns the provider's metadata."""
    info: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("provider.yaml").read_text(encoding="utf-8"))
    return info
