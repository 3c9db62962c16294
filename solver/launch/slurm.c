/* slurm.c - a plan as one script for sbatch, which writes the files of its framework and starts them.
 *
 * Where GPUs are of several groups the job is a heterogeneous one: its components are the groups in the order of the plan's
 * ranks.  Tasks and nodes of one srun over all components are numbered in this order, whatever the names of nodes are,
 * which a job of one component would follow.
 *
 *     #SBATCH --nodes=2 ...                component 0, of the first group: nodes 0 and 1, ranks 0 to 7
 *     #SBATCH hetjob
 *     #SBATCH --nodes=1 ...                component 1: node 2, ranks 8 to 15
 *     srun --het-group=0 --nodes=2 ... : --het-group=1 --nodes=1 ...
 */
#include "job.h"

#include <string.h>

#include "topt_json.h"
#include "topt_rendezvous.h"

static int64_t tasks_of_node(const struct sheet *s, const struct topt_component *c)
{
    return s->each_gpu ? c->per_node : 1;
}

/* A profile does not know where Slurm has a group's nodes.  sbatch refuses a partition that there is not, so that
 * no component starts on nodes of another group unnoticed. */
static void put_partition(const struct job *j, int i, int64_t first, struct topt_text *t)
{
    const struct topt_component *c = &j->component[i];
    topt_text_add(t, "# Component %d, ranks %lld to %lld, is on nodes of group ", i,
                  (long long)first, (long long)(first + c->nodes * c->per_node - 1));
    topt_job_put_name(c->group, t);
    topt_text_add(t, ":\n#SBATCH --partition=");
    topt_job_put_name(c->group, t);
    topt_text_add(t, "\n");
}

static void put_how_to_place(const struct job *j, struct topt_text *t)
{
    topt_text_add(
        t, "# Write the partition of each component's nodes below (or, in its place, "
           "--constraint or\n"
           "# --gpus-per-node=TYPE:N), or name it in the command:\n"
           "# sbatch -p PARTITION");
    for (int i = 1; i < j->components; i++)
        topt_text_add(t, " : -p PARTITION");
    topt_text_add(t, " job.sh\n");
}

static void put_resources(const struct job *j, const struct sheet *s, struct topt_text *t)
{
    int64_t first = 0;
    topt_text_add(t, "#SBATCH --job-name=");
    topt_job_put_name(j->name, t);
    topt_text_add(t, "\n");
    if (j->components > 1)
        put_how_to_place(j, t);
    for (int i = 0; i < j->components; i++) {
        const struct topt_component *c = &j->component[i];
        if (i)
            topt_text_add(t, "#SBATCH hetjob\n");
        if (j->components > 1)
            put_partition(j, i, first, t);
        topt_text_add(t,
                      "#SBATCH --nodes=%lld\n"
                      "#SBATCH --gpus-per-node=%lld\n"
                      "#SBATCH --ntasks-per-node=%lld\n"
                      "# Uncomment if the partition sets no DefCpuPerGPU:\n"
                      "##SBATCH --cpus-per-gpu=8\n",
                      (long long)c->nodes, (long long)c->per_node,
                      (long long)tasks_of_node(s, c));
        first += c->nodes * c->per_node;
    }
    topt_text_add(t, "set -eu\n");
    if (j->components > 1)
        topt_text_add(t,
                      "[ \"${SLURM_HET_SIZE:-1}\" = %d ] || {\n"
                      "    echo \"this is no heterogeneous job of %d components: submit "
                      "the script by sbatch\" >&2\n"
                      "    exit 1\n"
                      "}\n",
                      j->components, j->components);
}

/* The plan's numbers win over those of a topt_apply.py that lies beside the script. */
static void put_exports(const json_t *env, struct topt_text *t)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)env, name, value)
    {
        topt_text_add(t, "export %s='%s'\n", name, json_string_value(value));
    }
}

static void put_files(const json_t *files, struct topt_text *t)
{
    size_t i;
    json_t *f;
    topt_text_add(t, "files=$PWD/topt-$SLURM_JOB_ID\nmkdir -p \"$files\"\n");
    json_array_foreach(files, i, f)
    {
        const char *text = topt_json_words_at(f, "text");
        topt_text_add(t, "cat >\"$files/%s\" <<'END_OF_FILE'\n",
                      topt_json_words_at(f, "name"));
        topt_text_put(t, text, strlen(text));
        topt_text_add(t, "END_OF_FILE\n");
    }
}

/* Launchers meet at the first node of all, where this script runs, too. */
static void put_meeting_place(const struct job *j, struct topt_text *t)
{
    topt_text_add(t,
                  "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST%s\" | "
                  "head -n 1)\n"
                  "MASTER_PORT=$((%d + SLURM_JOB_ID %% %d))\n"
                  "export MASTER_ADDR MASTER_PORT\n",
                  j->components > 1 ? "_HET_GROUP_0" : "", topt_rendezvous_port(0),
                  TOPT_RENDEZVOUS_PORTS);
}

/* What srun starts as a task.  A node's number is that among the nodes of all components, whatever NODE_RANK
 * somebody's environment has. */
static const char *task_of(const struct job *j, const struct sheet *s)
{
    if (s->each_gpu)
        return s->each_gpu;
    return j->components > 1 ? "sh -c \"$start\" \"$files/launch.sh\""
                             : "sh \"$files/launch.sh\"";
}

static void put_options_of_component(int i, struct topt_text *t)
{
    topt_text_add(t,
                  "%s--het-group=%d ${SLURM_CPUS_PER_TASK_HET_GROUP_%d:+"
                  "--cpus-per-task=\"$SLURM_CPUS_PER_TASK_HET_GROUP_%d\"} \\\n    ",
                  i ? " : \\\n    " : "", i, i, i);
}

static void put_start(const struct job *j, const struct sheet *s, struct topt_text *t)
{
    char words[TOPT_RENDEZVOUS_SIZE];
    if (!s->each_gpu)
        put_meeting_place(j, t);
    if (j->components == 1)
        topt_text_add(t, "[ -z \"${SLURM_CPUS_PER_TASK-}\" ] || "
                         "export SRUN_CPUS_PER_TASK=\"$SLURM_CPUS_PER_TASK\"\n");
    else if (!s->each_gpu)
        topt_text_add(t, "start='NODE_RANK=$SLURM_NODEID exec sh \"$0\" \"$@\"'\n");
    topt_text_add(t, "srun ");
    for (int i = 0; i < j->components; i++) {
        const struct topt_component *c = &j->component[i];
        topt_rendezvous_srun(c->nodes, tasks_of_node(s, c), words);
        if (j->components > 1)
            put_options_of_component(i, t);
        topt_text_add(t, "%s %s \"$@\"", words, task_of(j, s));
    }
    topt_text_add(t, "\n");
}

int topt_job_as_slurm(const struct job *j, const char *head, const json_t *env,
                      struct sheet *s, struct topt_error *err)
{
    struct topt_text text = {0};
    json_t *files = s->files;
    topt_text_add(&text, "#!/bin/bash\n%s", head);
    put_resources(j, s, &text);
    put_exports(env, &text);
    put_files(files, &text);
    put_start(j, s, &text);
    s->files = json_array();
    json_decref(files);
    return topt_sheet_file(s, "job.sh", &text, err);
}
