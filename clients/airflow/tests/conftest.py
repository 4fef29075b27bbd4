"""An Airflow that is connected to a gateway."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from dev import Dev

# Airflow reads its environment when it is imported.
HOME = Path(tempfile.mkdtemp(prefix="sparkgate-airflow-"))
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__DAGS_FOLDER=str(Path(__file__).parent / "dags"),
    # DAGs that one test ran, another one triggers.
    AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION="False",
    AIRFLOW__LOGGING__LOGGING_LEVEL="INFO",
)


@pytest.fixture(scope="session")
def dev() -> Iterator[Dev]:
    dev = Dev()
    os.environ["AIRFLOW_CONN_SPARKGATE_DEFAULT"] = f'{{"conn_type": "sparkgate", "host": "{dev.url}"}}'
    os.environ["JOBS"] = str(dev.jobs)
    dev.job("ends", "import sys\nprint('ends with', sys.argv[1])\nsys.exit(int(sys.argv[1]))\n")
    dev.job(
        "waits",
        "import pathlib, sys, time\nprint('begun', flush=True)\n"
        "while not pathlib.Path(sys.argv[1]).exists():\n    time.sleep(0.05)\nprint('ended')\n",
    )
    yield dev
    dev.stop()


@pytest.fixture(scope="session", autouse=True)
def airflow_home() -> Iterator[Path]:
    program = Path(sys.executable).with_name("airflow")
    subprocess.run([program, "db", "migrate"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield HOME
    shutil.rmtree(HOME, ignore_errors=True)
