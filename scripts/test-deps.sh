#!/usr/bin/env bash
# What the tests need beyond the build: a browser, Debian's PostgreSQL with pgbench, certificates, a file system.
set -euo pipefail
missing=()
command -v chromium >/dev/null || missing+=(chromium)
[ -n "$(ls /usr/lib/postgresql/*/bin/pgbench 2>/dev/null)" ] || missing+=(postgresql)
command -v openssl >/dev/null || missing+=(openssl)
[ -x /usr/sbin/mkfs.ext4 ] || missing+=(e2fsprogs)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "The tests need ${missing[*]}: sudo apt-get install ${missing[*]}" >&2
    exit 5
  fi
  apt-get update -qq
  # A database cluster of Debian's own making is not wanted, only the programs.
  mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
fi
