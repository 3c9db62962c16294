/* confine.c - see confine.h. */
#include "confine.h"
#include "sanitized.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(TOPT_SECCOMP) && !defined(SANITIZED)
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#endif

#ifndef SANITIZED
/* Nothing that it could start would have more rights; both ask for that. */
static int renounce(struct topt_error *err)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
               ? topt_fail(err, TOPT_ERR_IO, "prctl: %s", strerror(errno))
               : 0;
}
#endif

/* ---- files --------------------------------------------------------------------------------- */

#ifdef SANITIZED
int confine_files(enum confined *ret, struct topt_error *err)
{
    (void)err;
    *ret = CONFINED_NOT;
    return 0;
}
#else
/* The kernel's, by number and layout (Documentation/userspace-api/landlock.rst), as headers may be
 * older than it: the same numbers on all architectures. */
enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, ASK_VERSION = 1 };

struct ruleset {
    uint64_t files, ports, scopes;
};

/* All that a version knows to forbid; a kernel takes no bit that it does not know. */
static size_t ruleset_of(long version, struct ruleset *ret)
{
    static const int bits[] = {0, 13, 14, 15, 15, 16}; /* of files, by version */
    int n = version < 5 ? bits[version] : bits[5];
    *ret = (struct ruleset){.files = (UINT64_C(1) << n) - 1,
                            .ports = version >= 4 ? 3 : 0,
                            .scopes = version >= 6 ? 3 : 0};
    return version >= 6   ? sizeof *ret
           : version >= 4 ? offsetof(struct ruleset, scopes)
                          : offsetof(struct ruleset, ports);
}

int confine_files(enum confined *ret, struct topt_error *err)
{
    struct ruleset all;
    *ret = CONFINED_NOT;
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    if (version < 1)
        return 0;
    size_t size = ruleset_of(version, &all);
    long fd = syscall(CREATE_RULESET, &all, size, 0);
    if (fd < 0)
        return topt_fail(err, TOPT_ERR_IO, "Landlock: %s", strerror(errno));
    int rc = renounce(err);
    if (rc == 0 && syscall(RESTRICT_SELF, fd, 0))
        rc = topt_fail(err, TOPT_ERR_IO, "Landlock: %s", strerror(errno));
    close((int)fd);
    *ret = rc ? CONFINED_NOT : CONFINED;
    return rc;
}
#endif

/* ---- calls --------------------------------------------------------------------------------- */

#if !defined(TOPT_SECCOMP) || defined(SANITIZED)
int confine_calls(enum confined *ret, struct topt_error *err)
{
    (void)err;
    *ret = CONFINED_NOT;
    return 0;
}
#else
static const char *const allowed[] = {
    /* what is open already */
    "read", "write", "readv", "writev", "recvfrom", "sendto", "recvmsg", "sendmsg",
    "poll", "ppoll", "close", "fstat", "lseek", "fcntl", "shutdown",
    /* a descriptor that wakes a thread */
    "eventfd2",
    /* memory; what may be executed is below */
    "brk", "munmap", "mremap", "madvise", "mincore",
    /* threads */
    "futex", "futex_waitv", "set_robust_list", "rseq", "set_tid_address", "gettid",
    "getpid", "tgkill", "sched_yield", "sched_getaffinity", "membarrier", "getcpu",
    "arch_prctl", "restart_syscall",
    /* signals of its own */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack",
    /* clocks, and what it may use */
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday",
    "time", "getrandom", "getrusage", "getrlimit", "sysinfo", "uname",
    /* the end */
    "exit", "exit_group"};

/* Calls that are allowed by an argument: where 'mask' of it is 'value'. */
static const struct by_argument {
    const char *name;
    unsigned argument;
    uint64_t mask, value;
} by_argument[] = {
    {"mmap", 2, PROT_EXEC, 0},
    {"mprotect", 2, PROT_EXEC, 0},
    {"clone", 0, CLONE_VM | CLONE_THREAD, CLONE_VM | CLONE_THREAD}, /* no process */
    {"prctl", 0, UINT64_MAX, PR_SET_NAME},
    {"prlimit64", 2, UINT64_MAX, 0}, /* asked, not set */
};

static int add_rules(scmp_filter_ctx filter)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed && rc == 0; i++) {
        int call = seccomp_syscall_resolve_name(allowed[i]);
        if (call != __NR_SCMP_ERROR) /* an older library need not know all */
            rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
    }
    for (size_t i = 0; i < sizeof by_argument / sizeof *by_argument && rc == 0; i++) {
        const struct by_argument *b = &by_argument[i];
        const struct scmp_arg_cmp is =
            SCMP_CMP64(b->argument, SCMP_CMP_MASKED_EQ, b->mask, b->value);
        rc = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW,
                                    seccomp_syscall_resolve_name(b->name), 1, &is);
    }
    /* Its flags lie in memory, where no filter sees them; without it libc takes clone. */
    int clone3 = seccomp_syscall_resolve_name("clone3");
    return rc || clone3 == __NR_SCMP_ERROR
               ? rc
               : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), clone3, 0);
}

int confine_calls(enum confined *ret, struct topt_error *err)
{
    *ret = CONFINED_NOT;
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
        return 0; /* the kernel has none */
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return topt_nomem(err, "a filter of calls");
    int rc = add_rules(filter);
    if (rc == 0)
        rc = seccomp_load(filter); /* renounces, too */
    seccomp_release(filter);
    if (rc)
        return topt_fail(err, TOPT_ERR_IO, "seccomp: %s", strerror(-rc));
    *ret = CONFINED;
    return 0;
}
#endif
