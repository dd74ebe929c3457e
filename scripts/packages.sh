# shellcheck shell=bash
# Sourced by what installs Debian's packages: only those that are missing are, and no service is started.
missing=()

needs() { # PACKAGE PROGRAM: the package that brings a program which is not there
  PATH="$PATH:/usr/sbin:/sbin" command -v "$2" >/dev/null || missing+=("$1")
}

may_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

how_to_install() { # the command for those who may
  echo "sudo apt-get install --no-install-recommends ${missing[*]}"
}

install_missing() { # fails where apt-get does
  local policy=/usr/sbin/policy-rc.d code=0
  if [ ! -e "$policy" ]; then # Debian's way to say: install, but start nothing (invoke-rc.d(8))
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    # shellcheck disable=SC2064 # the path as it is now
    trap "rm -f $policy" EXIT
  fi
  { apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; } || code=$?
  return $code
}
