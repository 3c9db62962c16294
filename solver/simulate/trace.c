/* trace.c - a simulation in the trace-event format: complete events ("X") on the threads
 * of one process, in microseconds. */
#include "topt_simulate.h"
#include "topt_staged.h"
#include "topt_text.h"

#include <stdio.h>

static const char *const threads[] = {"computing", "links inside a node",
                                      "links between nodes"};
enum { THREADS = sizeof threads / sizeof *threads };

/* A JSON string. */
static void put_string(struct topt_text *t, const char *s)
{
    topt_text_put(t, "\"", 1);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            topt_text_add(t, "\\%c", c);
        else if (c < 32)
            topt_text_add(t, "\\u%04x", c);
        else
            topt_text_put(t, s, 1);
    }
    topt_text_put(t, "\"", 1);
}

static void put_thread(struct topt_text *t, int thread, const char *name)
{
    topt_text_add(t,
                  "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":%d,"
                  "\"args\":{\"name\":",
                  thread);
    put_string(t, name);
    topt_text_add(
        t,
        "}},\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":0,\"tid\":%d,"
        "\"args\":{\"sort_index\":%d}},\n",
        thread, thread);
}

static void put_process(struct topt_text *t, const char *name)
{
    topt_text_add(
        t, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":");
    put_string(t, name);
    topt_text_add(t, "}}");
}

static const char *kind_of(const struct topt_simulation *s, int task)
{
    const struct topt_task *t = &s->schedule.task[task];
    if (!t->links)
        return s->task[task].part == TOPT_PART_MICRO ? "compute" : "update";
    return t->async ? "async" : "network";
}

static void put_task(struct topt_text *t, const struct topt_simulation *s, int task,
                     int thread)
{
    const struct topt_task *x = &s->schedule.task[task];
    const struct topt_simulated *what = &s->task[task];
    const struct topt_instr_time *at = &s->program->time[what->instr];
    char name[128];
    topt_text_add(t,
                  ",\n{\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
                  "\"cat\":\"%s\",\"name\":",
                  thread, (double)x->start_ns / 1e3,
                  (double)(x->end_ns - x->start_ns) / 1e3, kind_of(s, task));
    put_string(t, topt_task_words(s, task, name, sizeof name));
    topt_text_add(t, ",\"args\":{\"micro_batch\":%d,\"waited_us\":%.3f", what->micro,
                  (double)(x->start_ns - x->ready_ns) / 1e3);
    if (at->times > 1)
        topt_text_add(t, ",\"rounds\":%lld", (long long)at->times);
    topt_text_add(t, "}}");
}

char *topt_simulation_trace(const struct topt_simulation *s)
{
    struct topt_text t = {0};
    topt_text_add(&t, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (int i = 0; i < THREADS; i++)
        put_thread(&t, i, threads[i]);
    put_process(&t, s->program->model->name);
    for (int i = 0; i < s->schedule.n; i++) {
        const struct topt_task *x = &s->schedule.task[i];
        if (!x->ns)
            continue;
        if (!x->links)
            put_task(&t, s, i, 0);
        for (int l = 0; l < TOPT_LINK_COUNT; l++)
            if (x->links >> l & 1)
                put_task(&t, s, i, 1 + l);
    }
    topt_text_add(&t, "\n]}\n");
    return topt_text_take(&t);
}

/* ---- pipeline stages --------------------------------------------------------------------- */

/* An event without more to say. */
static void put_event(struct topt_text *t, int stage, int64_t start_ns, int64_t end_ns,
                      const char *kind, const char *name)
{
    topt_text_add(t,
                  ",\n{\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
                  "\"cat\":\"%s\",\"name\":",
                  stage, (double)start_ns / 1e3, (double)(end_ns - start_ns) / 1e3, kind);
    put_string(t, name);
}

static void put_pass(struct topt_text *t, const struct topt_stage_pass *p,
                     int64_t before_ns)
{
    char name[64];
    if (p->start_ns > before_ns) {
        put_event(t, p->stage, before_ns, p->start_ns, "bubble", "bubble");
        topt_text_add(t, "}");
    }
    if (p->end_ns == p->start_ns)
        return;
    snprintf(name, sizeof name, "%s %lld", p->backward ? "backward" : "forward",
             (long long)p->micro_batch);
    put_event(t, p->stage, p->start_ns, p->end_ns,
              p->chunk < 0  ? "end"
              : p->backward ? "backward"
                            : "forward",
              p->chunk < 0 ? "end of the step" : name);
    topt_text_add(t, ",\"args\":{\"micro_batch\":%lld,\"chunk\":%d}}",
                  (long long)p->micro_batch, p->chunk);
}

char *topt_staged_trace(const struct topt_staged *s)
{
    struct topt_text t = {0};
    int64_t before[TOPT_MAX_STAGES] = {0};
    char name[32];
    topt_text_add(&t, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (int i = 0; i < s->cost.stage.stages; i++) {
        snprintf(name, sizeof name, "stage %d", i);
        put_thread(&t, i, name);
    }
    put_process(&t, s->model);
    for (int i = 0; i < s->passes.n; i++) {
        const struct topt_stage_pass *p = &s->passes.at[i];
        put_pass(&t, p, before[p->stage]);
        before[p->stage] = p->end_ns;
    }
    topt_text_add(&t, "\n]}\n");
    return topt_text_take(&t);
}
