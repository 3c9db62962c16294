/* hw_shipped.c - the profiles of profiles/, put into the library by the assembler, so
 * that a program needs no data directory.  The file is found through the include path. */
#include "hw_impl.h"
#include "topt_hw.h"
#include "topt_near.h"

#include <string.h>

#define PROFILES(X)                                                                      \
    /* name, vendor of the devices, and the year in which they came out */               \
    X(a100_40_80, "a100-40-80", "NVIDIA", 2020)                                          \
    X(a100_40_dgx, "a100-40-dgx", "NVIDIA", 2020)                                        \
    X(a100_40_pcie, "a100-40-pcie", "NVIDIA", 2020)                                      \
    X(a100_80_dgx, "a100-80-dgx", "NVIDIA", 2020)                                        \
    X(a100_80_p4de, "a100-80-p4de", "NVIDIA", 2020)                                      \
    X(a100_80_pcie, "a100-80-pcie", "NVIDIA", 2021)                                      \
    X(a100_v100, "a100-v100", "NVIDIA", 2020)                                            \
    X(a10g_g5, "a10g-g5", "NVIDIA", 2021)                                                \
    X(a6000_1x8, "a6000-1x8", "NVIDIA", 2020)                                            \
    X(b200_hgx, "b200-hgx", "NVIDIA", 2024)                                              \
    X(b200_p6, "b200-p6", "NVIDIA", 2024)                                                \
    X(b300_hgx, "b300-hgx", "NVIDIA", 2025)                                              \
    X(gb200_nvl72, "gb200-nvl72", "NVIDIA", 2024)                                        \
    X(gb300_nvl72, "gb300-nvl72", "NVIDIA", 2025)                                        \
    X(h100_80_a3mega, "h100-80-a3mega", "NVIDIA", 2022)                                  \
    X(h100_80_dgx, "h100-80-dgx", "NVIDIA", 2022)                                        \
    X(h100_80_pcie, "h100-80-pcie", "NVIDIA", 2022)                                      \
    X(h100_94_nvl, "h100-94-nvl", "NVIDIA", 2023)                                        \
    X(h100_96_500w, "h100-96-500w", "NVIDIA", 2022)                                      \
    X(h20_96_hgx, "h20-96-hgx", "NVIDIA", 2024)                                          \
    X(h200_dgx, "h200-dgx", "NVIDIA", 2023)                                              \
    X(h800_80_hgx, "h800-80-hgx", "NVIDIA", 2023)                                        \
    X(l4_1x8, "l4-1x8", "NVIDIA", 2023)                                                  \
    X(l40s_1x8, "l40s-1x8", "NVIDIA", 2023)                                              \
    X(lab_cpu, "lab-cpu", "", 0)                                                         \
    X(mi300x, "mi300x", "AMD", 2023)                                                     \
    X(mi325x, "mi325x", "AMD", 2024)                                                     \
    X(mi355x, "mi355x", "AMD", 2025)                                                     \
    X(p100_4x4, "p100-4x4", "NVIDIA", 2016)                                              \
    X(rtx4090_1x8, "rtx4090-1x8", "NVIDIA", 2022)                                        \
    X(rtx4090_p2p_1x8, "rtx4090-p2p-1x8", "NVIDIA", 2022)                                \
    X(rtx5090_1x8, "rtx5090-1x8", "NVIDIA", 2025)                                        \
    X(rtx6000_ada_1x8, "rtx6000-ada-1x8", "NVIDIA", 2022)                                \
    X(t4_g4dn, "t4-g4dn", "NVIDIA", 2018)                                                \
    X(titanxp_8x6, "titanxp-8x6", "NVIDIA", 2017)                                        \
    X(tpu_v2_v3, "tpu-v2-v3", "Google", 2018)                                            \
    X(v100_32_dgx1, "v100-32-dgx1", "NVIDIA", 2018)                                      \
    X(v100_32_dgx2, "v100-32-dgx2", "NVIDIA", 2018)                                      \
    X(v100_32_pcie, "v100-32-pcie", "NVIDIA", 2018)                                      \
    X(v100_dgx1_2x8, "v100-dgx1-2x8", "NVIDIA", 2017)                                    \
    X(v100_dgx1_2x8_4x, "v100-dgx1-2x8-4x", "NVIDIA", 2017)                              \
    X(v100_dgx1_2x8_no_rdma, "v100-dgx1-2x8-no-rdma", "NVIDIA", 2017)                    \
    X(v100_pcie_1x8, "v100-pcie-1x8", "NVIDIA", 2017)

#define EMBED(id, name, vendor, year)                                                    \
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
#define NAME(id, name, vendor, year) name,
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
#define TEXT(id, name, vendor, year) topt_profile_##id,
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

const char *topt_hw_shipped_origin(const char *name, int *ret_year)
{
    static const struct {
        const char *vendor;
        int year;
    } origins[] = {
#define ORIGIN(id, name, vendor, year) {vendor, year},
        PROFILES(ORIGIN)
#undef ORIGIN
    };
    *ret_year = 0;
    for (size_t i = 0; names[i]; i++)
        if (!strcmp(names[i], name)) {
            *ret_year = origins[i].year;
            return origins[i].vendor;
        }
    return "";
}

void topt_hw_refuse_name(const char *name, enum topt_err code, struct topt_error *err)
{
    struct topt_near near = {.name = name};
    char meant[TOPT_NEAR_WORDS], matches[TOPT_NEAR_MATCHES];
    for (const char *const *known = topt_hw_shipped(); *known; known++)
        topt_near_try(&near, *known);
    topt_near_words(&near, meant);
    topt_near_containing(name, names, matches);
    if (*matches || *meant)
        topt_fail(err, code, "unknown hardware '%.80s'%s (`topt hw list` lists all)",
                  name, *matches ? matches : meant);
    else
        topt_fail(err, code,
                  "unknown hardware '%.80s': `topt hw list` lists all; `topt profile` "
                  "measures a cluster, or write a file with \"like\": NAME and what is "
                  "different",
                  name);
}
