/* ptrace(2) for user-mode-linux 6.1 (user_mode_linux.py preloads it): on a processor with AMX a process has more extended registers
 * than user-mode-linux has room for. The kernel truncates them when they are read, but sets all of them or none, so that
 * user-mode-linux panics when it runs its first process. Here those that it does not know keep their values. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef long of_libc(int request, pid_t pid, void *address, void *data);

long ptrace(enum __ptrace_request request, ...)
{
    static char registers[1 << 16]; /* not on the stack: the guest's kernel runs on stacks of 16 KiB */
    static of_libc *next;
    va_list words;

    va_start(words, request);
    pid_t pid = va_arg(words, pid_t);
    void *address = va_arg(words, void *);
    void *data = va_arg(words, void *);
    va_end(words);
    if (!next)
        next = (of_libc *)dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE) {
        struct iovec *known = data, all = {registers, sizeof registers};
        if (next(PTRACE_GETREGSET, pid, address, &all))
            return -1;
        if (known->iov_len < all.iov_len) {
            memcpy(registers, known->iov_base, known->iov_len);
            return next(request, pid, address, &all);
        }
    }
    return next(request, pid, address, data);
}
