# Shared by the scripts in this directory: `source` it, don't run it.
# shellcheck shell=bash disable=SC2034  # the variables are for the scripts that source this

# The Spark releases that tests and the demo use. SPARK is also the gateway's default.
SPARK=4.3.0
SPARK_3_5=3.5.9

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${SPARKGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sparkgate}

# On a terminal cargo shows its progress; in a log only warnings and errors.
CARGO_VOICE=()
[[ -t 2 ]] || CARGO_VOICE=(--quiet)

# `build ARGUMENTS OF CARGO…` runs cargo. If its output isn't a terminal, it prints every ten seconds how far cargo is.
build() {
    [[ ! -t 2 ]] || { cargo "$@"; return; }
    local log began=$SECONDS said=$SECONDS cargo
    log=$(mktemp "${TMPDIR:-/tmp}/sparkgate-build.XXXXXX")
    cargo "$@" >"$log" 2>&1 </dev/null &
    cargo=$!
    while kill -0 "$cargo" 2>/dev/null; do
        sleep 0.5
        ((SECONDS - said >= 10)) || continue
        said=$SECONDS
        say "building for $((SECONDS - began)) s: $(grep -c '^ *Compiling' "$log" || true) crates, the last is $(tail -n 1 "$log" | sed 's/^ *//')"
    done
    local status=0
    wait "$cargo" || status=$?
    # Warnings, and the end of a build that failed.
    if ((status)); then tail -n 60 "$log" >&2; else grep -E -A 12 '^warning' "$log" >&2 || true; fi
    rm -f "$log"
    return "$status"
}

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$(basename "$0"): $*"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# `quietly LOG COMMAND…` writes the command's output to LOG, and shows the end of it if the command fails.
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null && return
    local status=$?
    tail -n 40 "$log" >&2
    say "failed: $* (all of its output: $log)"
    return "$status"
}

# `step NAME COMMAND…` prints one line if the command succeeds; otherwise it prints the end of its output and exits.
step() {
    local name=$1 began=$SECONDS log
    shift
    log=$(mktemp "${TMPDIR:-/tmp}/sparkgate-step.XXXXXX")
    if ! "$@" >"$log" 2>&1 </dev/null; then
        tail -n 100 "$log"
        rm -f "$log"
        printf 'FAILED  %-12s after %d s: %s\n' "$name" $((SECONDS - began)) "$*"
        exit 1
    fi
    printf 'ok      %-12s %4d s\n' "$name" $((SECONDS - began))
    # What was left out.
    grep 'not checked' "$log" || true
    rm -f "$log"
}

# `with_lock FILE COMMAND…` runs the command in one process at a time. Without flock(1) it runs without a lock.
with_lock() {
    local file=$1
    shift
    if ! have flock; then
        "$@"
        return
    fi
    (
        exec 8>"$file"
        flock -n 8 || { say "waiting for another process that holds $file"; flock 8; }
        "$@" 8>&-
    )
}

# Prints the directory of a Postgres server's programs; fails if there is none.
postgres_bin() {
    local initdb
    for initdb in "$(command -v initdb || true)" /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb \
        /usr/local/pgsql/bin/initdb /opt/homebrew/opt/postgresql*/bin/initdb; do
        if [[ -x $initdb && -x $(dirname "$initdb")/postgres ]]; then
            dirname "$initdb"
            return
        fi
    done
    return 1
}

# Prints the path of PgBouncer, which Debian installs in root's PATH only; fails if there is none.
pgbouncer_program() {
    command -v pgbouncer || { [[ -x /usr/sbin/pgbouncer ]] && printf '%s\n' /usr/sbin/pgbouncer; }
}

# Prints the major version of the `java` that Spark would start; fails if there is none.
java_major() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    have "$java" || return 1
    # "17.0.15" gives 17, and "1.8.0_402" gives 1, which is too old, too.
    "$java" -version 2>&1 </dev/null | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

# `cargo_tool NAME VERSION [OPTION…]` prints the path of a program from crates.io. The first call builds it into the cache, without
# optimisation, which takes half the time.
cargo_tool() {
    local name=$1 tool=$CACHE/$1-$2
    mkdir -p "$CACHE"
    [[ -x $tool/bin/$name ]] || with_lock "$tool.lock" build_tool "$tool" "$@"
    printf '%s\n' "$tool/bin/$name"
}

build_tool() {
    local tool=$1 name=$2 version=$3
    shift 3
    [[ ! -x $tool/bin/$name ]] || return 0
    say "building $name $version, which takes a few minutes the first time"
    CARGO_TARGET_DIR=$tool/target CARGO_PROFILE_DEV_DEBUG=0 quietly "$tool.log" \
        cargo install --locked --debug --root "$tool" --version "$version" "$@" "$name"
    rm -rf "$tool/target"
}
