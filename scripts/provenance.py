"""Prints the provenance of a release's files: `provenance.py FOLDER STARTED`, in the format of in-toto with SLSA's predicate.

It says what was built from what, by which command and where. It isn't signed: GitHub's attestations are.
"""

import datetime
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def sha256(path):
    with open(path, "rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def image(line):
    name, _, digest = line.partition("@sha256:")
    return {"uri": f"docker://{name}", "digest": {"sha256": digest}}


def main():
    folder, started = pathlib.Path(sys.argv[1]), sys.argv[2]
    finished = datetime.datetime.now(datetime.timezone.utc).strftime("%FT%TZ")
    of = os.environ.get
    source = {"name": "source", "digest": {"gitCommit": output("git", "rev-parse", "HEAD")}}
    builder, invocation = "https://sparkgate.dev/builders/unattested", None
    if "GITHUB_ACTIONS" in os.environ:
        repository = f"{of('GITHUB_SERVER_URL')}/{of('GITHUB_REPOSITORY')}"
        source["uri"] = f"git+{repository}"
        builder = f"{of('GITHUB_SERVER_URL')}/{of('GITHUB_WORKFLOW_REF')}"
        invocation = f"{repository}/actions/runs/{of('GITHUB_RUN_ID')}/attempts/{of('GITHUB_RUN_ATTEMPT')}"
    materials = [source]
    for file in ("Cargo.lock", "rust-toolchain.toml", "tools/helm/go.sum", "clients/python-tools.txt"):
        materials.append({"name": file, "digest": sha256(file)})
    for file in sorted(folder.glob("*.bases.txt")):
        materials.extend(image(line) for line in file.read_text().split())
    metadata = {"invocationId": invocation, "startedOn": started, "finishedOn": finished}
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": sha256(file)} for file in sorted(folder.iterdir())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://sparkgate.dev/release/v1",
                "externalParameters": {"command": "scripts/release", "tag": output("git", "tag", "--points-at", "HEAD")},
                "internalParameters": {"rustc": output("rustc", "--version"), "architecture": platform.machine()},
                "resolvedDependencies": materials,
            },
            "runDetails": {
                "builder": {"id": builder},
                "metadata": {name: value for name, value in metadata.items() if value},
            },
        },
    }
    json.dump(statement, sys.stdout, indent=2)
    print()


main()
