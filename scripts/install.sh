#!/bin/sh
# Installs Sparkgate from the folder of a release: `sh install.sh [DIRECTORY]`, by default /usr/local/bin. It needs no network and
# only this folder: it compares the files with their checksums, tries the program and copies it.
set -eu

directory=${1:-/usr/local/bin}
die() {
    echo "install.sh: $*" >&2
    exit 1
}

case $directory in
    /*) ;;
    *) directory=$PWD/$directory ;;
esac
cd "$(dirname "$0")"
[ "$(uname -s)" = Linux ] || die "the programs are for Linux; on other systems, use the image"
case $(uname -m) in
    x86_64) arch=amd64 ;;
    aarch64) arch=arm64 ;;
    *) die "there is no program for $(uname -m)" ;;
esac
archive=$(echo sparkgate-*-linux-"$arch".tar.gz)
[ -f "$archive" ] || die "this folder has no program for $arch, or more than one"

# Files that were left out of a download don't matter; those that are here have to be right.
grep -q " $archive\$" SHA256SUMS || die "SHA256SUMS doesn't name $archive"
sha256sum --check --quiet --strict --ignore-missing SHA256SUMS || die "a file differs from its checksum: download it again"
echo "The checksums are right."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xzf "$archive" -C "$work"
version=$("$work/sparkgate" --version) || die "the program doesn't run here: it needs glibc 2.34 or newer"
mkdir -p "$directory" 2>/dev/null || true
[ -w "$directory" ] || die "$directory isn't writable: run this as root, or name another, as in \`sh install.sh ~/.local/bin\`"
# A program that is running keeps its file.
install -m 755 "$work/sparkgate" "$directory/sparkgate.new"
mv "$directory/sparkgate.new" "$directory/sparkgate"
echo "$version is installed as $directory/sparkgate."

case :$PATH: in
    *:"$directory":*) ;;
    *) echo "$directory isn't in your PATH: add it." ;;
esac
name=${archive%-linux-*}
cat <<END

To be a client of a gateway:
  export SPARKGATE_URL=https://sparkgate.example.org
  sparkgate login
  sparkgate submit --help

To try a gateway on this machine, without a cluster (on Debian and Ubuntu):
  apt-get install postgresql openjdk-17-jre-headless python3-venv
  python3 -m venv spark && spark/bin/pip install pyspark==4.3.0
  PATH=\$PWD/spark/bin:\$PATH sparkgate dev

To run a gateway on Kubernetes, push the image, and install the chart $name.tgz as manual/docs/operate/install.html says:
  skopeo copy oci-archive:${archive%.tar.gz}.oci.tar docker://REGISTRY/sparkgate:${name#sparkgate-}

The manual is in $name-docs.tar.gz: unpack it and open manual/index.html.
END
