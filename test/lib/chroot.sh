# shellcheck shell=bash
# Chroots of other Debian releases, for the PostgreSQL versions that this release does not package. Used by tools/check-all.

# chroot_make RELEASE MAJOR DIR: a server, its headers, a C++ compiler and what the tests need; about 600 MB.
chroot_make() {
    local release=$1 major=$2 dir=$3 uri check
    [ "$(id -u)" = 0 ] || { echo "a chroot needs root"; return 1; }
    if ! command -v mmdebstrap >/dev/null || [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
        apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
            -o DPkg::Lock::Timeout=300 mmdebstrap debian-archive-keyring || return 1
    fi
    # The archive and the attitude to old indexes that this machine's apt is set up with. Signatures are checked.
    uri=$(chroot_archive)
    [ -n "$uri" ] || { apt-get update -q && uri=$(chroot_archive); }
    [ -n "$uri" ] || { echo "apt knows no Debian archive"; return 1; }
    check=$(apt-config dump --format '%v' Acquire::Check-Valid-Until)
    local packages="g++,make,binutils,python3,python3-psycopg,libipc-run-perl,libtap-parser-sourcehandler-pgtap-perl"
    packages+=",postgresql-$major,postgresql-$major-pgtap,tzdata-legacy"
    # The headers' package depends on clang and LLVM, which serve only JIT bitcode: it is unpacked without them. And
    # nothing may create or start a cluster.
    # shellcheck disable=SC2016
    mmdebstrap --mode=root --variant=apt --keyring=/usr/share/keyrings/debian-archive-keyring.gpg --include="$packages" \
        --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Retries "3"' --aptopt="Acquire::Check-Valid-Until \"${check:-true}\"" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt=force-unsafe-io \
        --essential-hook='mkdir -p "$1/etc/postgresql-common"' \
        --essential-hook='echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.conf"' \
        --essential-hook='printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d" && chmod +x "$1/usr/sbin/policy-rc.d"' \
        --customize-hook="chroot \"\$1\" sh -ec 'cd /tmp; apt-get download -qq postgresql-server-dev-$major
            dpkg-deb -x postgresql-server-dev-$major*.deb /; rm -f *.deb'" \
        "$release" "$dir" "$uri"
}

# chroot_archive: the URI that serves the running release.
chroot_archive() {
    # shellcheck source=/dev/null disable=SC2016
    (. /etc/os-release && apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $VERSION_CODENAME") |
        sort -u | head -n 1
}

# chroot_run DIR COMMAND...: as root, with private mounts and processes: all of them vanish with COMMAND. The network is
# the machine's. A server wants a /dev/shm that its user can write.
chroot_run() {
    # shellcheck disable=SC2016
    unshare --mount --propagation private --pid --fork --kill-child sh -ec '
        root=$1; shift
        mount -t proc proc "$root/proc"
        mkdir -p "$root/dev/shm"
        mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
        exec chroot "$root" "$@"' sh "$@"
}
