#!/usr/bin/env bash
# What the tests need beyond the build: a browser, Debian's PostgreSQL, the tools of every kind of storage, a kernel to
# run them under.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

needs chromium chromium
[ -n "$(ls /usr/lib/postgresql/*/bin/pgbench 2>/dev/null)" ] || missing+=(postgresql)
needs openssl openssl
needs valgrind valgrind
needs g++ c++
needs util-linux losetup
needs mount mount
needs e2fsprogs mkfs.ext4
needs xfsprogs mkfs.xfs
needs btrfs-progs mkfs.btrfs
needs fio fio
needs bindfs bindfs
needs etcd-server etcd
needs patroni patroni
needs pgbouncer pgbouncer
needs python3-etcd patroni
needs mdadm mdadm
needs lvm2 lvm
needs dmsetup dmsetup
needs kmod modprobe
needs openssh-client ssh
needs openssh-server sshd
needs sudo sudo
needs patchelf patchelf
needs gpgv gpgv
needs user-mode-linux linux.uml
# OpenZFS does where its module is loaded; elsewhere ZFS runs as a process.
[ -e /sys/module/zfs ] || needs zfs-fuse zfs-fuse
[ ${#missing[@]} -gt 0 ] || exit 0

if ! may_install; then
  echo "The tests need ${missing[*]}: $(how_to_install)" >&2
  exit 5
fi
# A database cluster of Debian's own making is not wanted, only the programs.
mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
install_missing
