/* test_rendezvous.c - where the nodes of a job meet. */
#include <string.h>

#include "tap.h"
#include "topt_rendezvous.h"

static void first(const char *list, const char *want)
{
    char host[TOPT_HOST_SIZE];
    int rc = topt_rendezvous_host(list, host);
    ok(want ? !rc && !strcmp(host, want) : rc, "the first of '%s' is %s", list,
       rc ? "unknown" : host);
}

static void test_hosts(void)
{
    char longest[TOPT_HOST_SIZE + 1];
    memset(longest, 'a', TOPT_HOST_SIZE);
    longest[TOPT_HOST_SIZE] = '\0';
    first("n1", "n1");
    first("n1,n2", "n1");
    first("n[1-2]", "n1");
    first("gpu[003-008,012].site,login", "gpu003.site");
    first("r[1-2]n[05,07-09]b,x", "r1n05b");
    first("a-b-[7]", "a-b-7");
    first("", NULL);
    first("n1;reboot", NULL);
    first(longest, NULL);
    first(longest + 1, longest + 1);
}

static void test_words(void)
{
    char words[TOPT_RENDEZVOUS_SIZE];
    topt_rendezvous_torchrun(1, 4, "n[1-2]", 7, words);
    ok(!strcmp(words, "--nnodes=1 --nproc-per-node=4 --standalone"), "%s", words);
    topt_rendezvous_torchrun(2, 4, "n[1-2]", 120007, words);
    ok(!strcmp(words, "--nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d "
                      "--rdzv-id=120007 --rdzv-endpoint=n1:20007"),
       "%s", words);
    topt_rendezvous_torchrun(2, 4, NULL, 0, words);
    ok(!strcmp(words, "--nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d"), "%s", words);
    topt_rendezvous_srun(3, 4, words);
    ok(!strcmp(words, "--nodes=3 --ntasks=12 --ntasks-per-node=4"), "%s", words);
}

int main(void)
{
    test_hosts();
    test_words();
    return done_testing();
}
