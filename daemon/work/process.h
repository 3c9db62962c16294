/* process.h - one worker process: started, killed, and how it ended.
 *
 * It is started by exec, never by a bare fork, as this program has threads.  It gets a socket as
 * descriptor 3, /dev/null as its input and output, our standard error, and nothing else.
 * Thread safety: one owner at a time, the same thread as long as it lives: the worker dies with it.
 */
#ifndef TOPTD_PROCESS_H
#define TOPTD_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "topt_error.h"

struct process {
    pid_t pid; /* 0: none */
    int fd;    /* our end of its socket */
};

/* 'memory': bytes of address space, 0: no limit.  'nice': added to our own. */
int process_start(struct process *p, const char *program, int64_t memory, int nice,
                  struct topt_error *err) TOPT_MUST_CHECK;
int process_is_there(const struct process *p); /* it has not closed its end */
/* End it.  '*ret' is the status that waitpid gave. */
void process_end(struct process *p, int *ret);
/* It closed its end: wait for its end, a moment, then end it. */
void process_reap(struct process *p, int *ret);
/* "ended by signal 11 (Segmentation fault)" */
void process_how(int status, char *ret, size_t size);

#endif
