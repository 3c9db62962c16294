/* exec.h - inside the executor: a rank's buffers and the counting of their bytes. */
#ifndef TOPT_EXEC_H
#define TOPT_EXEC_H

#include "topt_runtime.h"

struct topt_meter {
    int64_t granule, live, peak;
};

struct topt_session {
    const struct topt_program *p;
    struct topt_comm *comm;
    struct topt_device *dev;
    struct topt_session_options options;
    void **ptr;      /* by buffer; NULL where not alive */
    int64_t *bytes;  /* by buffer, as charged */
    int64_t *counts; /* 2 * ranks, for exchanges */
    struct topt_meter meter;
    int64_t step, micro; /* finished steps; micro-batch of this one */
    double loss;         /* sum over the micro-batches so far */
    struct topt_session_times times;
    void *scratch; /* host memory, grown on demand */
    int64_t scratch_bytes;
};

/* Local box, elements and bytes of one of the program's buffers on this rank. */
struct topt_box topt_buffer_box(const struct topt_session *s, int buffer);
int64_t topt_buffer_elements(const struct topt_session *s, int buffer);
int topt_session_element_bytes(const struct topt_session *s, enum topt_element e);
int64_t topt_buffer_bytes(const struct topt_session *s, int buffer);
int topt_buffer_alloc(struct topt_session *s, int buffer,
                      struct topt_error *err) TOPT_MUST_CHECK;
void topt_buffer_free(struct topt_session *s, int buffer);

/* At least 'bytes' of host memory, valid until the next call.  NULL: out of memory. */
void *topt_scratch(struct topt_session *s, int64_t bytes);

/* Fill a parameter's local block from the seed. */
int topt_init_param(struct topt_session *s, int buffer,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
