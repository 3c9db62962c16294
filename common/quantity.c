/* quantity.c - numbers, sizes and lists as people write them, and short forms for people.
 *
 * Blanks around a value mean nothing and are passed over.  Whatever is refused is named, with what
 * to write instead. */
#include "topt_text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *past_blanks(const char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    return s;
}

int topt_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret,
                   struct topt_error *err)
{
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (end == s || *past_blanks(end) != '\0')
        return topt_fail(err, TOPT_ERR_INVAL, "'%.60s' is not a whole number, as 8", s);
    if (v < min || (errno && v < 0))
        return topt_fail(err, TOPT_ERR_INVAL, "%.60s is too small; give at least %lld", s,
                         (long long)min);
    if (v > max || errno)
        return topt_fail(err, TOPT_ERR_INVAL, "%.60s is too large; give at most %lld", s,
                         (long long)max);
    *ret = v;
    return 0;
}

int topt_parse_real(const char *s, int above_zero, double *ret, struct topt_error *err)
{
    char *end;
    double v = strtod(s, &end);
    if (end == s || *past_blanks(end) || !isfinite(v))
        return topt_fail(err, TOPT_ERR_INVAL, "'%.60s' is not a number, as 0.5", s);
    if (v < 0 || (above_zero && v <= 0))
        return topt_fail(err, TOPT_ERR_INVAL, "%.60s is too small; give %s", s,
                         above_zero ? "more than 0" : "at least 0");
    *ret = v;
    return 0;
}

int topt_parse_amount(const char *s, int64_t *ret, struct topt_error *err)
{
    static const char letters[] = "KMBT";
    char *end;
    double v = strtod(s, &end);
    const char *unit = past_blanks(end);
    const char *at = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
    if (end == s || !isfinite(v) || *past_blanks(unit + (at != NULL)))
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "'%.60s' is not an amount; give one as 300B, 1.5T or 2e12 (K, M, "
            "B and T are thousands, millions, billions and trillions)",
            s);
    v *= at ? pow(1000, (double)(at - letters) + 1) : 1;
    if (v < 1 || v >= 0x1p62)
        return topt_fail(err, TOPT_ERR_INVAL, "%.60s is too %s", s,
                         v < 1 ? "small; give at least 1" : "large");
    *ret = (int64_t)(v + 0.5);
    return 0;
}

int topt_parse_share(const char *s, double *ret, struct topt_error *err)
{
    static const double percent_from = 5;
    char *end;
    double v = strtod(s, &end);
    const char *unit = past_blanks(end);
    int is_percent = *unit == '%';
    if (end == s || !isfinite(v) || *past_blanks(unit + is_percent))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.60s' is not a share; give one as 0.8 or 80%%", s);
    if (v < 0 || v > 100)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%.60s is too %s for a share; give 0 to 1, or 0%% to 100%%", s,
                         v < 0 ? "small" : "large");
    if (!is_percent && v > 1 && v < percent_from)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "%.60s is either a share, which is %.4g %% and more than the whole, "
            "or a percentage, which is %.4g; write %.4g%% if that is meant",
            s, 100 * v, v / 100, v);
    *ret = is_percent || v > 1 ? v / 100 : v;
    return 0;
}

/* What multiplies a number before 'unit', 0 where there is no such unit. */
static double unit_bytes(const char *unit, size_t len)
{
    static const char letters[] = "KMGT";
    if (len == 0 || (len == 1 && toupper((unsigned char)*unit) == 'B'))
        return 1;
    const char *at = strchr(letters, toupper((unsigned char)*unit));
    if (!at)
        return 0;
    double power = (double)(at - letters) + 1;
    if (len == 1 || (len == 3 && !strncasecmp(unit + 1, "iB", 2)))
        return pow(1024, power);
    return len == 2 && toupper((unsigned char)unit[1]) == 'B' ? pow(1000, power) : 0;
}

/* '*ret_bare': there was no unit. */
static int parse_size(const char *s, int64_t *ret_bytes, int *ret_bare,
                      struct topt_error *err)
{
    char *end;
    errno = 0;
    double v = strtod(s, &end);
    if (end == s || !isfinite(v) || errno)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.60s' is not a size; write 16GiB or 4096", s);
    const char *number = past_blanks(s), *unit = past_blanks(end);
    size_t len = strlen(unit);
    while (len && isspace((unsigned char)unit[len - 1]))
        len--;
    double factor = unit_bytes(unit, len);
    if (factor == 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.60s' has an unknown unit; use KiB, MiB, GiB, TiB", s);
    v *= factor;
    if (v < 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.60s' is no positive size; write 16GiB or 4096", s);
    if (v >= 0x1p62)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.60s' is too large a size; below 2^62 bytes", s);
    /* Doubles have not every whole number. */
    int whole = strspn(number, "0123456789") == (size_t)(end - number);
    *ret_bytes = whole && factor <= 1 ? strtoll(number, NULL, 10) : (int64_t)v;
    *ret_bare = len == 0;
    return 0;
}

int topt_parse_bytes(const char *s, int64_t *ret_bytes, struct topt_error *err)
{
    int bare;
    return parse_size(s, ret_bytes, &bare, err);
}

int topt_parse_memory(const char *s, int64_t *ret_bytes, struct topt_error *err)
{
    int bare;
    int64_t v;
    if (parse_size(s, &v, &bare, err))
        return -1;
    if (bare && v < 1 << 20)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%lld is %lld bytes; did you mean %lld%s? (%lldB is bytes)",
                         (long long)v, (long long)v, (long long)v,
                         v < 1000 ? "GiB" : "MiB", (long long)v);
    *ret_bytes = v;
    return 0;
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* The item at '*from', less the blanks around it, and its length; '*from' goes to the comma or
 * the end behind it. */
static const char *item_at(const char **from, size_t *len)
{
    const char *item = past_blanks(*from);
    const char *end = item + strcspn(item, ",");
    *from = end;
    while (end > item && isspace((unsigned char)end[-1]))
        end--;
    *len = (size_t)(end - item);
    return item;
}

int topt_list_next(const char *list, const char **at, char *item, size_t size,
                   struct topt_error *err)
{
    const char *from = *at ? *at : list, *before = list;
    size_t len, other;
    if (*at && !*from)
        return 0;
    from += *at != NULL;
    const char *x = item_at(&from, &len);
    if (!len)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.60s' has an empty place; write items with one comma between",
                         list);
    if (len >= size)
        return topt_fail(err, TOPT_ERR_INVAL, "'%.*s' is longer than any it could be",
                         (int)(len < 60 ? len : 60), x);
    for (const char *y; (y = item_at(&before, &other)) != x; before++)
        if (len == other && !memcmp(x, y, len))
            return topt_fail(err, TOPT_ERR_INVAL, "%.*s is given twice; once is enough",
                             (int)len, x);
    memcpy(item, x, len);
    item[len] = '\0';
    *at = from;
    return 1;
}

int topt_count_add(int64_t v, int64_t *list, int most, int *n, struct topt_error *err)
{
    for (int i = 0; i < *n; i++)
        if (list[i] == v)
            return topt_fail(err, TOPT_ERR_INVAL, "%lld is given twice; once is enough",
                             (long long)v);
    if (*n == most)
        return topt_fail(err, TOPT_ERR_INVAL, "more than %d counts; give fewer", most);
    list[(*n)++] = v;
    return 0;
}

int topt_parse_counts(const char *s, int64_t max, int64_t *ret, int most, int *ret_n,
                      struct topt_error *err)
{
    const char *at = NULL;
    char item[32];
    int rc;
    *ret_n = 0;
    while ((rc = topt_list_next(s, &at, item, sizeof item, err)) > 0) {
        int64_t v;
        if (topt_parse_int(item, 1, max, &v, err) ||
            topt_count_add(v, ret, most, ret_n, err))
            return -1;
    }
    return rc;
}

/* ---- for people ----------------------------------------------------------------------------- */

/* 'v' in the largest of the 'n' units that leaves at least 1, with about three digits. */
static char *show(double v, double step, const char *const *unit, size_t n, char *buf,
                  size_t size)
{
    size_t i = 0;
    while (fabs(v) >= step && i + 1 < n) {
        v /= step;
        i++;
    }
    snprintf(buf, size,
             i == 0          ? "%.0f %s"
             : fabs(v) < 100 ? "%.2f %s"
                             : "%.1f %s",
             v, unit[i]);
    return buf;
}

char *topt_show_bytes(int64_t bytes, char *buf, size_t size)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    return show((double)bytes, 1024, unit, sizeof unit / sizeof *unit, buf, size);
}

char *topt_show_ns(int64_t ns, char *buf, size_t size)
{
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    return show((double)ns, 1000, unit, sizeof unit / sizeof *unit, buf, size);
}
