/* hw_figures.c - single figures of a profile by name: those that it says are assumed, and a profile in
 * which one of them is another, so that a caller can tell what it moves. */
#include "hw_impl.h"
#include "topt_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A section by the name that figures begin with: a level's link, else a member. */
static const json_t *section_of(const json_t *doc, const char *name)
{
    const json_t *link = topt_hw_link(doc, name);
    return link ? link : json_object_get(doc, name);
}

json_t *topt_hw_assumed(const struct topt_hw *hw)
{
    static const char *const sections[] = {"device", "node", "cluster", "collective",
                                           "host"};
    json_t *list = json_array(), *doc = topt_hw_to_json(hw), *name;
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        size_t i;
        const json_t *section = section_of(doc, sections[s]);
        json_array_foreach(json_object_get(section, "assumed"), i, name)
        {
            if (topt_hw_figure(section, json_string_value(name)))
                json_array_append_new(
                    list, json_sprintf("%s.%s", sections[s], json_string_value(name)));
        }
    }
    json_decref(doc);
    return list;
}

/* A number; the second of each pair of a list; and so for each member of an object. */
static json_t *times(const json_t *value, double factor)
{
    const char *key;
    json_t *member, *ret = json_deep_copy(value);
    size_t i;
    if (json_is_integer(value) || json_is_real(value)) {
        double x = json_number_value(value) * factor;
        json_decref(ret);
        return json_is_integer(value) ? json_integer((json_int_t)ceil(x)) : json_real(x);
    }
    json_object_foreach(ret, key, member)
        json_object_set_new(ret, key, times(member, factor));
    json_array_foreach(ret, i, member)
        json_array_set_new(member, 1, times(json_array_get(member, 1), factor));
    return ret;
}

struct topt_hw *topt_hw_scaled(const struct topt_hw *hw, const char *figure,
                               double factor, struct topt_error *err)
{
    char section[32], holder[64] = "";
    const char *name = figure + strcspn(figure, "."), *dot;
    json_t *doc = topt_hw_to_json(hw), *of;
    snprintf(section, sizeof section, "%.*s", (int)(name - figure), figure);
    name += *name == '.';
    of = (json_t *)section_of(doc, section);
    dot = strchr(name, '.');
    if (dot) {
        snprintf(holder, sizeof holder, "%.*s", (int)(dot - name), name);
        of = json_object_get(of, holder);
        name = dot + 1;
    }
    json_t *value = json_object_get(of, name);
    struct topt_hw *ret = NULL;
    if (!value)
        topt_fail(err, TOPT_ERR_INVAL, "'%.60s' is no figure of '%.100s'", figure,
                  topt_hw_name(hw));
    else if (json_object_set_new(of, name, times(value, factor)))
        topt_nomem(err, "a hardware profile");
    else
        ret = topt_hw_from_json(doc, err);
    json_decref(doc);
    return ret;
}
