/* trace.c - a simulation in the trace-event format: complete events ("X") on the threads
 * of one process, in microseconds. */
#include "topt_simulate.h"
#include "topt_text.h"

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

static void put_thread(struct topt_text *t, int thread)
{
    topt_text_add(t,
                  "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":%d,"
                  "\"args\":{\"name\":",
                  thread);
    put_string(t, threads[thread]);
    topt_text_add(
        t,
        "}},\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":0,\"tid\":%d,"
        "\"args\":{\"sort_index\":%d}},\n",
        thread, thread);
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
        put_thread(&t, i);
    topt_text_add(
        &t, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":");
    put_string(&t, s->program->model->name);
    topt_text_add(&t, "}}");
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
