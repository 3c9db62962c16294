/* main.c - toptd-worker: the only program of the daemon that holds the solver.  toptd
 * starts one for each slot of its queue (work/process.c) as `toptd-worker PARENT MEMORY
 * NICE` with a socket as descriptor 3; it is of no use to people. */
#include "confine.h"
#include "frame.h"
#include "serve.h"
#include "topt_json.h"
#include "topt_log.h"
#include "topt_text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { SOCKET = 3 };

/* Before it reads anything.  Where the system refuses, the unit's and the user's limits remain. */
static void confine(void)
{
    struct topt_error err;
    enum confined unused;
    if (confine_files(&unused, &err) < 0)
        topt_log(TOPT_LOG_WARN, "files are not closed to this process: %s", err.text);
    if (confine_calls(&unused, &err) < 0)
        topt_log(TOPT_LOG_WARN, "calls are not closed to this process: %s", err.text);
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    int64_t parent, memory, more_nice;
    if (argc != 4 || topt_parse_int(argv[1], 0, INT64_MAX, &parent, &err) < 0 ||
        topt_parse_int(argv[2], 0, INT64_MAX, &memory, &err) < 0 ||
        topt_parse_int(argv[3], 0, 39, &more_nice, &err) < 0) {
        fprintf(stderr, "toptd-worker: this program is started by toptd\n");
        return 2;
    }
    topt_log_init("toptd-worker", TOPT_LOG_WARN, getenv("JOURNAL_STREAM") != NULL);
    json_object_seed(0); /* before there are threads */
    topt_json_watch_memory();
    int rc = serve_alone(parent, memory, (int)more_nice, &err);
    if (rc == 0) {
        confine();
        rc = serve(SOCKET, &err);
    }
    if (rc < 0) {
        topt_log(TOPT_LOG_WARN, "%s", err.text);
        _Exit(err.code == TOPT_ERR_NOMEM ? WORKER_NOMEM : EXIT_FAILURE);
    }
    _Exit(EXIT_SUCCESS); /* whatever is computed, nobody waits for it */
}
