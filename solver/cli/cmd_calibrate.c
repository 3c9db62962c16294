/* cmd_calibrate.c - `topt calibrate`: a hardware profile fitted to measured steps. */
#include "topt_cli.h"
#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topt_calibrate.h"

enum { MOST_FILES = 256 };

struct calibrate_args {
    const char *output;
    int json, force;
};
#define AT(field) offsetof(struct calibrate_args, field)

static const struct topt_option options[] = {
    TOPT_EXAMPLE(
        "topt calibrate a100-80-dgx measured-1.json measured-2.json -o calibrated.json",
        "a profile that explains two measured steps"),
    {"o", TOPT_OPT_STRING, AT(output), "FILE",
     "write the calibrated profile, which must not be there yet"},
    {"force", TOPT_OPT_FLAG, AT(force), "",
     "write it over a file that is there, or though reports that are left out are not "
     "predicted better"},
    {"json", TOPT_OPT_FLAG, AT(json), "", "JSON on standard output"},
    {0}};
static const char usage[] =
    "topt calibrate HW FILE... [options]\n"
    "Fit a hardware profile to measured steps, by few factors within bounds, and say "
    "which "
    "of them the\nmeasurements can tell.  FILEs are topt-measured/1, topt-report/1 of "
    "topt "
    "run, topt-observations/1 of\ntoptd, and the plans that these name.";

/* The profile goes where none is, and where reports that were left out are predicted better. */
static int write_profile(const struct calibrate_args *a, const json_t *result,
                         struct topt_error *err)
{
    if (!a->output)
        return 0;
    if (!a->force && !json_is_true(json_object_get(result, "better")))
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "not written: reports that are left out of the fit are not "
                         "predicted better by it; give more reports, or --force");
    return topt_cli_write_json(json_object_get(result, "profile"), a->output, err);
}

static int calibrate(const struct calibrate_args *a, const char *const *words, int n,
                     struct topt_error *err)
{
    struct topt_reports *reports = NULL;
    json_t *result = NULL;
    struct topt_hw *hw = topt_hw_load(words[0], err);
    int rc = hw ? topt_reports_read(words + 1, n - 1, hw, &reports, err) : -1;
    rc = rc || topt_calibrate(hw, reports, &result, err);
    if (!rc && a->json) {
        rc = topt_cli_write_json(result, "-", err);
    } else if (!rc) {
        char *text = topt_calibrate_text(result);
        fputs(text ? text : "", stdout);
        free(text);
    }
    rc = rc || write_profile(a, result, err);
    if (!rc && !a->json)
        printf(a->output ? "profile   written to %s\n"
                         : "profile   not written; add -o ours.json%s\n",
               a->output ? a->output : "");
    json_decref(result);
    topt_reports_destroy(reports);
    topt_hw_destroy(hw);
    return rc ? -1 : 0;
}

int topt_cmd_calibrate(int argc, char **argv)
{
    struct calibrate_args a = {0};
    struct topt_error err = {0};
    const char *words[MOST_FILES + 1];
    int n,
        rc = topt_options_parse(options, argc, argv, &a, words, MOST_FILES + 1, &n, &err);
    if (rc == 1) {
        topt_options_help(stdout, usage, options);
        return 0;
    }
    if (!rc && a.output && !a.force && !access(a.output, F_OK))
        rc = topt_fail(&err, TOPT_ERR_USAGE,
                       "%s is there already; give another -o, or --force", a.output);
    if (!rc && n < 2)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "which %s? usage: %.*s",
                       n ? "measurements" : "profile", (int)strcspn(usage, "\n"), usage);
    rc = rc || calibrate(&a, words, n, &err);
    return rc ? topt_cli_fail("calibrate", &err) : 0;
}
