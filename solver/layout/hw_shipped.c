/* hw_shipped.c - the profiles of profiles/, put into the library by the assembler, so
 * that a program needs no data directory.  The file is found through the include path. */
#include "hw_impl.h"
#include "topt_hw.h"
#include "topt_near.h"
#include "topt_text.h"

#include <string.h>

#define PROFILES(X)                                                                      \
    X(a100_40_80, "a100-40-80")                                                          \
    X(a100_40_dgx, "a100-40-dgx")                                                        \
    X(a100_80_dgx, "a100-80-dgx")                                                        \
    X(a100_80_p4de, "a100-80-p4de")                                                      \
    X(a100_v100, "a100-v100")                                                            \
    X(h100_80_a3mega, "h100-80-a3mega")                                                  \
    X(h100_80_dgx, "h100-80-dgx")                                                        \
    X(h100_96_500w, "h100-96-500w")                                                      \
    X(h200_dgx, "h200-dgx")                                                              \
    X(lab_cpu, "lab-cpu")                                                                \
    X(p100_4x4, "p100-4x4")                                                              \
    X(rtx4090_1x8, "rtx4090-1x8")                                                        \
    X(rtx4090_p2p_1x8, "rtx4090-p2p-1x8")                                                \
    X(titanxp_8x6, "titanxp-8x6")                                                        \
    X(tpu_v2_v3, "tpu-v2-v3")                                                            \
    X(v100_dgx1_2x8, "v100-dgx1-2x8")                                                    \
    X(v100_dgx1_2x8_4x, "v100-dgx1-2x8-4x")                                              \
    X(v100_dgx1_2x8_no_rdma, "v100-dgx1-2x8-no-rdma")                                    \
    X(v100_pcie_1x8, "v100-pcie-1x8")

#define EMBED(id, name)                                                                  \
    __asm__(".pushsection .rodata\n"                                                     \
            ".hidden topt_profile_" #id "\n"                                             \
            ".global topt_profile_" #id "\n"                                             \
            "topt_profile_" #id ":\n"                                                    \
            ".incbin \"profiles/" name ".json\"\n"                                       \
            ".byte 0\n"                                                                  \
            ".popsection\n");                                                            \
    extern const char topt_profile_##id[] __attribute__((visibility("hidden")));
PROFILES(EMBED)

static const char *const names[] = {
#define NAME(id, name) name,
    PROFILES(NAME)
#undef NAME
        NULL};

const char *const *topt_hw_shipped(void)
{
    return names;
}

const char *topt_hw_shipped_text(const char *name, size_t *ret_len)
{
    static const char *const text[] = {
#define TEXT(id, name) topt_profile_##id,
        PROFILES(TEXT)
#undef TEXT
    };
    for (size_t i = 0; names[i]; i++)
        if (!strcmp(names[i], name)) {
            *ret_len = strlen(text[i]);
            return text[i];
        }
    return NULL;
}

/* "; did you mean a100-80-dgx or a100-80-p4de?": those that have the name in theirs. */
static void add_those_with(const char *name, struct topt_text *t)
{
    int n = 0, found = 0;
    for (int i = 0; names[i]; i++)
        n += strcasestr(names[i], name) != NULL;
    for (int i = 0; names[i] && n; i++)
        if (strcasestr(names[i], name)) {
            topt_text_add(t, "%s%s",
                          !found          ? "; did you mean "
                          : found + 1 < n ? ", "
                                          : " or ",
                          names[i]);
            found++;
        }
    if (n)
        topt_text_add(t, "?");
}

void topt_hw_refuse_name(const char *name, enum topt_err code, struct topt_error *err)
{
    struct topt_near near = {.name = name};
    char meant[TOPT_NEAR_WORDS];
    for (const char *const *known = topt_hw_shipped(); *known; known++)
        topt_near_try(&near, *known);
    struct topt_text t = {0};
    topt_near_words(&near, meant);
    if (!*meant && strlen(name) >= 3)
        add_those_with(name, &t);
    topt_fail(err, code, "unknown hardware '%.80s'%s (`topt hw list` lists all)", name,
              t.s ? t.s : meant);
    topt_text_fini(&t);
}
