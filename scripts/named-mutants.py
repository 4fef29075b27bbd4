"""Plays the mutants of tests/mutants/named.toml: each is a fault that the code once had or might get, and names the tests of which
one has to fail with it. `scripts/mutants --named` calls it.

The mutants are made in a copy of the repository in target/mutants/tree, which keeps what it has built.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "target/mutants/tree"
TABLE = ROOT / "tests/mutants/named.toml"


def mutants(names: list[str]) -> list[dict]:
    known = tomllib.loads(TABLE.read_text())["mutant"]
    unknown = set(names) - {mutant["name"] for mutant in known}
    if unknown:
        sys.exit(f"there is no mutant {', '.join(sorted(unknown))} in {TABLE.relative_to(ROOT)}")
    return [mutant for mutant in known if not names or mutant["name"] in names]


def apply(mutant: dict, root: pathlib.Path) -> str:
    """Returns the text of the mutant's file with its edits. Each line that it looks for has to occur exactly once."""
    text = (root / mutant["file"]).read_text()
    for edit in mutant["edits"]:
        found = text.count(edit["find"])
        if found != 1:
            raise LookupError(f"{mutant['file']} has this {found} times, instead of once: {edit['find']!r}")
        text = text.replace(edit["find"], edit["replace"])
    return text


def copy_tree() -> None:
    """Copies what git knows of. Unchanged files keep their times, so that cargo builds only what has changed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    files = {pathlib.Path(name) for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()}
    for file in files:
        source, copy = ROOT / file, TREE / file
        if not copy.exists() or copy.stat().st_mtime_ns != source.stat().st_mtime_ns:
            copy.parent.mkdir(parents=True, exist_ok=True)
            # A link can't be copied over another one.
            copy.unlink(missing_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
    for old in (path for path in TREE.rglob("*") if path.is_file() and "target" not in path.parts[len(TREE.parts) :]):
        if old.relative_to(TREE) not in files:
            old.unlink()


def cargo(arguments: list[str], log: pathlib.Path) -> tuple[bool, str]:
    """Runs `cargo test` with a private Postgres in the copy; returns whether it succeeded, and its output."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(TREE / "target")}
    done = subprocess.run(
        [TREE / "scripts/postgres", "cargo", "test", "--quiet", *arguments],
        cwd=TREE, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    log.write_text(done.stdout)
    return done.returncode == 0, done.stdout


def tests_run(output: str) -> int:
    return sum(int(passed) + int(failed) for passed, failed in re.findall(r"(\d+) passed; (\d+) failed", output))


def play(mutant: dict) -> str | None:
    """Returns what is wrong: the mutant survives, or can't be played."""
    log = TREE.parent / f"{mutant['name']}.log"
    original = TREE / mutant["file"]
    before, times = original.read_bytes(), original.stat()
    for test in mutant["tests"]:
        passed, output = cargo(test.split(), log)
        if not passed or tests_run(output) == 0:
            return f"without the mutant, `cargo test {test}` has to pass, and runs {tests_run(output)} tests: {log}"
    try:
        original.write_text(apply(mutant, TREE))
        if mutant.get("refused_by_the_compiler"):
            built, _ = cargo(["-p", "sparkgate", "--lib", "--no-run"], log)
            return f"it compiles: {log}" if built else None
        for test in mutant["tests"]:
            built, _ = cargo([*test.split(), "--no-run"], log)
            if not built:
                return f"it doesn't compile: {log}"
            passed, _ = cargo(test.split(), log)
            if not passed:
                return None
        return f"it survives: {', '.join(mutant['tests'])}"
    finally:
        original.write_bytes(before)
        os.utime(original, ns=(times.st_atime_ns, times.st_mtime_ns))
        # Cargo compares times: the mutant's objects are newer than the original.
        original.touch()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="only apply them")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    chosen = mutants(arguments.names)
    wrong = []
    for mutant in chosen:
        try:
            apply(mutant, ROOT)
        except (LookupError, FileNotFoundError) as error:
            wrong.append(f"{mutant['name']}: {error}")
    if wrong or arguments.check:
        print(f"{len(chosen) - len(wrong)} of {len(chosen)} mutants fit the code", *wrong, sep="\n")
        sys.exit(bool(wrong))
    if "SPARKGATE_KUBE_ASSETS" not in os.environ:
        assets = subprocess.run([ROOT / "scripts/kube"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        os.environ["SPARKGATE_KUBE_ASSETS"] = assets
    copy_tree()
    for mutant in chosen:
        fault = play(mutant)
        print(f"{'caught' if fault is None else 'WRONG':<8}{mutant['name']:<36}{fault or ', '.join(mutant['tests'])}", flush=True)
        wrong += [mutant["name"]] if fault else []
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
