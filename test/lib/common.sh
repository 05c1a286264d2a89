# shellcheck shell=bash disable=SC2034
# Shared by test/run, tools/demo and tools/soak: packages, the build, a private copy of the server, throwaway clusters.
#
# Everything lives below one fresh folder $WORK in ${TMPDIR:-/tmp}; cleanup() ends the servers started there, by pid,
# and removes it. Nothing of the machine's own PostgreSQL is touched: the extension is installed into a copy of the
# server's files (Debian's server finds its files relative to its binary, so a copy works).
#
#   PGMAJOR=15        which Debian server packages to use
#   PG_CONFIG=...     another server altogether
#   JOBS=2            parallel compilers and test files
#   SANITIZE=yes      the library with AddressSanitizer and UndefinedBehaviorSanitizer; their reports are in the server's log
#   NO_APT=1          the machine has what is needed, whatever its list of packages says

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=$ROOT/build-check
PGMAJOR=${PGMAJOR:-15}
PG_CONFIG=${PG_CONFIG:-/usr/lib/postgresql/$PGMAJOR/bin/pg_config}
JOBS=${JOBS:-$(nproc)}
export LC_ALL=C.UTF-8 PG_COLOR=never

BUILD_PACKAGES=(g++ make "postgresql-$PGMAJOR" "postgresql-server-dev-$PGMAJOR")
UNIT_PACKAGES=(g++ make cmake libgtest-dev tzdata)
MODEL_PACKAGES=(spin gcc libc6-dev)
FUZZ_PACKAGES=(g++ make cmake clang-14 libclang-rt-14-dev)
PGTAP_PACKAGES=("postgresql-$PGMAJOR-pgtap" libtap-parser-sourcehandler-pgtap-perl)
TAP_PACKAGES=(libipc-run-perl python3 python3-psycopg iproute2)
LINT_PACKAGES=(perl binutils shellcheck)
TIDY_PACKAGES=(clang-tidy-14)
FORMAT_PACKAGES=(clang-format-14)

say() { printf '%s\n' "$*"; }
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# need PACKAGE...: installs the Debian packages that are missing (root), or says how to (anybody else).
need() {
    local missing=() p
    [ -z "${NO_APT:-}" ] || return 0
    command -v dpkg-query >/dev/null || return 0 # not Debian: whoever runs this brings the tools
    for p in $(printf '%s\n' "$@" | sort -u); do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || die "packages are missing; as root: apt-get install ${missing[*]}"
    say "Installing Debian packages: ${missing[*]}"

    # A freshly installed server package would create and start a cluster of its own; nobody asked for one.
    local conf_dir=/etc/postgresql-common/createcluster.d log rc=0
    local conf=$conf_dir/qinglong-sched-no-cluster.conf
    log=$(mktemp)
    mkdir -p "$conf_dir"
    echo 'create_main_cluster = false' >"$conf"
    {
        apt-get update -q &&
            DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
                -o DPkg::Lock::Timeout=300 "${missing[@]}"
    } </dev/null >"$log" 2>&1 || rc=$?
    rm -f "$conf"
    rmdir --ignore-fail-on-non-empty "$conf_dir"
    [ "$rc" = 0 ] || tail -n 30 "$log" >&2
    rm -f "$log"
    [ "$rc" = 0 ] || die "apt-get failed"
}

# as COMMAND...: as user postgres when we are root (PostgreSQL refuses root), else as ourselves.
as() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=postgres --regid=postgres --init-groups env HOME="$WORK" TMPDIR="$WORK/tmp" PATH="$BIN:$PATH" "$@"
    else
        env TMPDIR="$WORK/tmp" PATH="$BIN:$PATH" "$@"
    fi
}

# fg COMMAND...: runs it in a process group of its own and waits, so that a signal reaches us at once and cleanup()
# can end the whole group.
fg_group=
fg() {
    local rc=0
    set -m
    "$@" </dev/null &
    fg_group=$!
    set +m
    wait "$fg_group" || rc=$?
    fg_group=
    return "$rc"
}

WORK=
cleanup() {
    local rc=$? pidfile pid
    trap '' INT TERM HUP
    [ -z "$fg_group" ] || kill -TERM -- "-$fg_group" 2>/dev/null || :
    if [ -n "$WORK" ] && [ -d "$WORK" ]; then
        while IFS= read -r -d '' pidfile; do
            pid=$(head -n 1 "$pidfile" 2>/dev/null) || continue
            # The pid may have been reused since: only a process that works in this data folder is ours.
            [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$(dirname "$pidfile")" ] || continue
            kill -QUIT "$pid" 2>/dev/null || :
            for _ in $(seq 50); do
                [ -d "/proc/$pid" ] || break
                sleep 0.1
            done
        done < <(find "$WORK" -name postmaster.pid -print0 2>/dev/null)
        rm -rf "$WORK" || :
    fi
    exit "$rc"
}

# make_work: the folder of this run. Short, because socket paths may not be longer than 107 bytes.
make_work() {
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/ql-XXXXXX")
    trap cleanup EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    mkdir "$WORK/tmp" "$WORK/out"
    [ "$(id -u)" != 0 ] || chown -R postgres: "$WORK"
}

# show_errors LOG: what a compiler or linker complained about.
show_errors() { grep -E ': (fatal )?error|: warning|undefined reference|\*\*\*' -A 5 "$1" | cut -c 1-300 | head -n 60 || :; }

# build: the extension, out of tree and incrementally, and its installation into the private copy. One build at a time
# per checkout. Sets MODULE, the library.
build() {
    local dir=$BUILD/pg-${PG_CONFIG//\//_} flags=() rc=0
    if [ -n "${SANITIZE:-}" ]; then
        dir=$dir-sanitize
        # Not -Werror: instrumented code lets the compiler see fewer initializations than there are.
        flags=(WERROR= QL_CXXFLAGS='-fsanitize=address,undefined -fno-omit-frame-pointer -O1' QL_LDFLAGS='-fsanitize=address,undefined')
    fi
    say "Building the extension"
    mkdir -p "$dir"
    copy_server
    exec 9>"$BUILD/.lock"
    flock 9
    fg make -C "$dir" -f "$ROOT/Makefile" -j "$JOBS" PG_CONFIG="$PG_CONFIG" DESTDIR="$TREE" "${flags[@]}" install >"$dir/make.log" 2>&1 || rc=1
    exec 9>&- # frees the lock
    MODULE=$dir/qinglong_sched.so
    if [ "$rc" != 0 ]; then
        show_errors "$dir/make.log"
        say "The build failed; the whole output is in ${dir#"$ROOT"/}/make.log"
    fi
    return "$rc"
}

# copy_server: the server's files below $WORK/tree. Sets TREE, BIN and PGXS_TEST, the folder of pg_regress and its kin.
copy_server() {
    local what dir
    TREE=$WORK/tree
    for what in bindir pkglibdir sharedir; do
        dir=$("$PG_CONFIG" --$what)
        [ -d "$TREE$dir" ] && continue
        mkdir -p "$TREE$dir"
        cp -a --reflink=auto "$dir/." "$TREE$dir/"
    done
    BIN=$TREE$("$PG_CONFIG" --bindir)
    rm -f "$TREE$("$PG_CONFIG" --sharedir)"/extension/qinglong_sched[.-]* # an older one of the machine's
    # A test may put versions of its own there.
    [ "$(id -u)" != 0 ] || chown postgres: "$TREE$("$PG_CONFIG" --sharedir)/extension"
    PGXS_TEST=$(cd "$(dirname "$("$BIN/pg_config" --pgxs)")/../test" && pwd)
}

# sanitizer_environment: sets SANITIZER, what a server needs to load a library built with SANITIZE.
sanitizer_environment() {
    SANITIZER=()
    [ -n "${SANITIZE:-}" ] || return 0
    [ -e "$WORK/asan_first.so" ] ||
        gcc -shared -fPIC -O1 -Wl,-z,initfirst -o "$WORK/asan_first.so" "$ROOT/test/lib/asan_first.c"
    # What PostgreSQL keeps until a process ends would count as leaks.
    SANITIZER=(LD_PRELOAD="$(realpath "$(gcc -print-file-name=libasan.so)") $WORK/asan_first.so"
        ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:disable_coredump=0 UBSAN_OPTIONS=print_stacktrace=1)
}

# start_server NAME [CONF LINE...]: a throwaway cluster in $WORK/NAME, on a socket only; points libpq's variables at it.
start_server() {
    local dir=$WORK/$1
    shift
    as mkdir "$dir"
    if [ ! -d "$WORK/initdb" ]; then
        as "$BIN/initdb" -D "$WORK/initdb" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$WORK/out/initdb.log" 2>&1 ||
            { cat "$WORK/out/initdb.log"; die "initdb failed"; }
    fi
    as cp -a "$WORK/initdb" "$dir/data"
    { cat "$ROOT/test/server.conf"
      printf '%s\n' "unix_socket_directories = '$dir'" "$@"
    } | as tee -a "$dir/data/postgresql.conf" >/dev/null
    sanitizer_environment
    as env "${SANITIZER[@]}" "$BIN/pg_ctl" -D "$dir/data" -l "$dir/log" -w -t 60 start >"$dir/pg_ctl.log" 2>&1 ||
        { cat "$dir/log"; die "the throwaway server did not start"; }
    export PGHOST=$dir PGPORT=54321 PGUSER=postgres PGDATABASE=postgres
    SERVER_LOG=$dir/log
}

stop_server() {
    as "$BIN/pg_ctl" -D "$PGHOST/data" -w -t 60 -m fast stop >/dev/null 2>&1 ||
        { say "the server in $PGHOST did not stop in time"; return 1; }
}
