/* fuzz_worker.c - what a worker parses of strangers' bytes, with the real importers
 * behind: bodies with a question, models of every format, profiles.  The first byte says
 * as which of them the rest is read. */
#include "answer.h"
#include "planner.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As operation.c writes them. */
static void put_request(struct frame *f, int which, const uint8_t *body, size_t len)
{
    static const char *const names[] = {"x/config.json", "m.onnx", "train.sh", ""};
    if (which == 0) { /* a question that holds its model */
        frame_begin(f, FRAME_READ);
        frame_put_int(f, 1);
        frame_put_text(f, "");
        frame_put_text(f, "");
        frame_put(f, body, len);
    } else if (which <= 4) { /* a model's file, and a question beside it */
        frame_begin(f, FRAME_READ);
        frame_put_int(f, 0);
        frame_put_text(f, which == 4 ? "{\"kind\":\"plan\",\"batch\":8,\"seq\":64}" : "");
        frame_put_text(f, names[which - 1]);
        frame_put(f, body, len);
    } else if (which == 5) {
        frame_begin(f, FRAME_PROFILE);
        frame_put(f, body, len);
    } else { /* a question alone */
        char *text = strndup((const char *)body, len);
        frame_begin(f, FRAME_CHECK);
        frame_put_text(f, text);
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct planner *planner;
    struct frame request = {0}, reply = {0};
    struct topt_error err = {0};
    struct watch w;
    memset(&w, 0, sizeof w);
    if (!planner) {
        json_object_seed(1);
        planner = planner_create();
    }
    if (!size || !planner)
        return 0;
    put_request(&request, data[0] % 7, data + 1, size - 1);
    if (frame_end(&request, &err) == 0) {
        request.at = FRAME_HEADER;
        answer(planner, &request, &w, &reply);
        if (!reply.len) /* there is always an answer while there is memory */
            abort();
    }
    frame_fini(&request);
    frame_fini(&reply);
    return 0;
}
