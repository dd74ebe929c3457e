#!/usr/bin/env bash
# Installs the wheel of dist/ where nothing was prepared for it, in Debian's minimal system with Python and nothing else: no Rust,
# Node or compiler, and no network. As root and as an ordinary user, each with storages of its own. What the wheel
# depends on is downloaded before. Leaves Debian's system in target/debian-base for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
base=$PWD/target/debian-base
wheel=$(compgen -G "dist/pgplinth-*-manylinux*_$(uname -m).whl" || true)
[ -n "$wheel" ] || { echo "no wheel for this machine in dist/: make dist" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "Debian's system is made and entered by chroot: sudo make test-dist" >&2; exit 5; }

scripts/debian-base.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/wheels" "$work/layers"
.venv/tools/bin/pip download --quiet --only-binary :all: --dest "$work/wheels" "$wheel"

cat >"$work/inside" <<'INSIDE'
set -euo pipefail
for program in cc gcc c++ rustc cargo node; do
  ! command -v $program >/dev/null || { echo "$program is here" >&2; exit 1; }
done
cd "$(mktemp -d)"
python3 -m venv venv
venv/bin/pip install --quiet --no-index --find-links /wheels pgplinth
PATH="$PWD/venv/bin:$PATH"
plinth --version
[ "$(python -m plinth --version)" = "$(plinth --version)" ]
[ -e venv/share/man/man1/plinth-run.1 ]
plinth servers
plinth doctor . >doctor.txt
plinth init mine.toml
plinth plan mine.toml >plan.txt
plinth probe fsync . --seconds 0.1 --only one_block >probe.txt
# Two trials of 2 s each: what they show may be undecided, which is exit code 3.
code=0
plinth run mine.toml --bundle bundle --quiet --repeats 2 --duration 2s --set measure.warmup=0s || code=$?
[ $code = 0 ] || [ $code = 3 ]
plinth verify bundle
plinth report bundle --html --output report.html
grep -q '<html' report.html
plinth history . >history.txt
code=0
plinth serve bundle 2>message || code=$?
[ $code = 5 ] && grep -q "pip install 'pgplinth\[serve\]'" message
plinth clean
[ -z "$(awk '$5 ~ /plinth/' /proc/self/mountinfo)" ]
INSIDE

cat >"$work/outside" <<'OUTSIDE'
set -euo pipefail
work=$1 base=$2 user=$3 root=$1/layers/root
mount -t tmpfs tmpfs "$work/layers"
mkdir "$work"/layers/{upper,index,root}
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/layers/upper,workdir=$work/layers/index" "$root"
mkdir "$root/wheels"
mount --bind "$work/wheels" "$root/wheels"
cp "$work/inside" "$root/inside"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir -m 1777 "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ip link set lo up
as=()
if [ "$user" != root ]; then
  chroot "$root" useradd --create-home "$user"
  as=(setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all --bounding-set=-all)
fi
exec chroot "$root" "${as[@]:-env}" env -i HOME="$([ "$user" = root ] && echo /root || echo "/home/$user")" \
  PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C.UTF-8 bash /inside
OUTSIDE

for user in root tester; do
  echo "== as $user"
  unshare --mount --net --pid --fork --kill-child bash "$work/outside" "$work" "$base" "$user"
done
echo "installed and run in Debian's minimal system, as root and as an ordinary user"
