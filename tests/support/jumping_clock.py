"""A machine whose monotonic clock jumps when a test says so: clock_gettime of a library that is loaded before libc's."""

import struct
import subprocess
import sys
from pathlib import Path

_SOURCE = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static volatile int64_t *jumped_ns;
static int (*of_libc)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    jumped_ns = mmap(NULL, sizeof *jumped_ns, PROT_READ, MAP_SHARED, open(getenv("JUMPED_NS"), O_RDONLY), 0);
    of_libc = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int result = of_libc(id, now);
    if (result == 0 && id == CLOCK_MONOTONIC) {
        int64_t ns = now->tv_sec * 1000000000LL + now->tv_nsec + *jumped_ns;
        now->tv_sec = ns / 1000000000LL;
        now->tv_nsec = ns % 1000000000LL;
    }
    return result;
}
"""


class JumpingClock:
    """`command` is plinth; of the hosts that run it one has this clock."""

    def __init__(self, folder: Path) -> None:
        source, library = folder / "clock.c", folder / "clock.so"
        source.write_text(_SOURCE)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        self._jumped = folder / "jumped"
        self.jump(0)
        self.command = folder / "plinth-with-its-clock"
        self.command.write_text(
            f'#!/bin/sh\nif mkdir "{folder}/taken" 2>/dev/null\nthen export LD_PRELOAD="{library}" JUMPED_NS="{self._jumped}"\nfi\n'
            f'exec {Path(sys.executable).with_name("plinth")} "$@"\n'
        )
        self.command.chmod(0o755)

    def jump(self, ns: int) -> None:
        """Be so far ahead of the machine's own from now on."""
        with self._jumped.open("r+b" if self._jumped.exists() else "wb") as file:
            file.write(struct.pack("<q", ns))
