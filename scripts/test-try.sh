#!/usr/bin/env bash
# Whether `make try` gets what its experiment measures with in Debian's minimal system: as an ordinary user and without a network it says
# what is missing and how to get it, and goes on; as root it installs it. Needs root and a network. Leaves target/debian-base for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "Debian's system is made and entered by chroot: sudo make test-try" >&2; exit 5; }
scripts/debian-base.sh
layers=$(mktemp -d)
trap 'rm -rf "$layers"' EXIT

cat >"$layers/inside" <<'INSIDE'
set -euo pipefail
layers=$1 base=$2 root=$1/fs/root
mkdir "$layers/fs"
mount -t tmpfs tmpfs "$layers/fs"
mkdir "$layers"/fs/{upper,index,root}
mount -t overlay overlay -o "lowerdir=$base,upperdir=$layers/fs/upper,workdir=$layers/fs/index" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/scripts"
cp scripts/packages.sh scripts/try-deps.sh "$root/scripts/"
try() { chroot "$root" "$@" env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C.UTF-8 "${proxies[@]}" /scripts/try-deps.sh 2>&1; }
proxies=()
while IFS= read -r line; do proxies+=("$line"); done < <(env | grep -iE '^(http|https|no)_proxy=' || true)
there() { chroot "$root" sh -c 'command -v fio' >/dev/null; }
absent() { ! there; } # a function, since errexit passes over a command with ! before it

absent || { echo "fio is in the minimal system: this shows nothing" >&2; exit 1; }
said=$(try setpriv --reuid=65534 --regid=65534 --clear-groups)
grep -q 'sudo apt-get install --no-install-recommends fio' <<<"$said"
absent
said=$(try unshare --net)
grep -q 'apt-get could not install fio' <<<"$said"
absent
[ ! -e "$root/usr/sbin/policy-rc.d" ]
try env
there
[ ! -e "$root/usr/sbin/policy-rc.d" ]
chroot "$root" fio --version
[ -z "$(try env)" ] # what is there is not installed again
INSIDE
unshare --mount --fork --kill-child bash "$layers/inside" "$layers" "$PWD/target/debian-base"
echo "make try gets fio in Debian's minimal system, and says what it lacks where it may not"
