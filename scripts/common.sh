# Shared by the scripts beside it: `source` it, don't run it.
# shellcheck shell=bash disable=SC2034  # the variables are for the scripts that source this

# The Spark releases that tests and the demo use. SPARK is also the gateway's default.
SPARK=4.3.0
SPARK_3_5=3.5.9

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${SPARKGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sparkgate}

# A person sees cargo's progress; a log only what went wrong.
CARGO_VOICE=()
[[ -t 2 ]] || CARGO_VOICE=(--quiet)

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$(basename "$0"): $*"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# `quietly LOG COMMAND…` keeps what the command says in LOG, and shows its end when it fails.
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null && return
    local status=$?
    tail -n 40 "$log" >&2
    say "failed: $* (all of its output: $log)"
    return "$status"
}

# `with_lock FILE COMMAND…` lets one process at a time run the command. Without flock(1) it runs unguarded.
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

# The directory of a Postgres server's programs; fails when there is none.
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

# The path of PgBouncer, which Debian installs where only root looks; fails when there is none.
pgbouncer_program() {
    command -v pgbouncer || { [[ -x /usr/sbin/pgbouncer ]] && printf '%s\n' /usr/sbin/pgbouncer; }
}

# The major version of the `java` that Spark would start; fails when there is none.
java_major() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    have "$java" || return 1
    # "17.0.15" gives 17, and "1.8.0_402" gives 1, which is as old as it looks.
    "$java" -version 2>&1 </dev/null | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}
