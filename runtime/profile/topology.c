/* topology.c - a node read by hwloc: packages, caches, GPUs, what joins them, adapters, and which
 * processors are near which.
 *
 * GPUs are the PCI devices that compute: 3D controllers, processing accelerators, and
 * display adapters of NVIDIA and AMD.  NVLinks are the distances "NVLinkBandwidth" between
 * GPUs, switches and packages, of which a GPU's row added up is what it can send.  All
 * GPUs are joined where GPUs and switches lead from each to each other; switches of a
 * node are one fabric, whose links among themselves the distances leave out. Where the
 * way leads over packages, the slots are what is counted. */
#include "topology.h"
#include "topt_json.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

#if TOPT_HAVE_HWLOC
#include <hwloc.h>

static int load(const char *xml, hwloc_topology_t *ret, struct topt_error *err)
{
    hwloc_topology_t t;
    if (hwloc_topology_init(&t))
        return topt_nomem(err, "the topology");
    int bad = xml && hwloc_topology_set_xml(t, xml);
    bad = bad || hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL) ||
          hwloc_topology_load(t);
    if (bad) {
        hwloc_topology_destroy(t);
        return topt_fail(err, TOPT_ERR_INVAL, "%.160s: hwloc can't read that topology",
                         xml ? xml : "this machine");
    }
    *ret = t;
    return 0;
}

/* ---- processors -------------------------------------------------------------------- */

static int count(hwloc_topology_t t, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(t, type);
    return n > 0 ? n : 0;
}

static int64_t largest_cache(hwloc_topology_t t, hwloc_obj_type_t type)
{
    int64_t most = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, type, o));)
        most = (int64_t)o->attr->cache.size > most ? (int64_t)o->attr->cache.size : most;
    return most;
}

static void read_processors(hwloc_topology_t t, struct topt_topology *ret)
{
    hwloc_obj_t root = hwloc_get_root_obj(t),
                package = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    snprintf(ret->model, sizeof ret->model, "%s", model ? model : "");
    ret->packages = count(t, HWLOC_OBJ_PACKAGE);
    ret->numa = count(t, HWLOC_OBJ_NUMANODE);
    ret->threads = count(t, HWLOC_OBJ_PU);
    ret->cores = count(t, HWLOC_OBJ_CORE);
    ret->cores = ret->cores ? ret->cores : ret->threads;
    ret->memory = (int64_t)root->total_memory;
    ret->l2 = largest_cache(t, HWLOC_OBJ_L2CACHE);
    ret->l3 = largest_cache(t, HWLOC_OBJ_L3CACHE);
}

/* ---- devices ----------------------------------------------------------------------- */

static int computes(hwloc_obj_t pci)
{
    enum { NVIDIA = 0x10de, AMD = 0x1002 };
    int class = pci->attr->pcidev.class_id, vendor = pci->attr->pcidev.vendor_id;
    int theirs = vendor == NVIDIA || vendor == AMD;
    return class == 0x0302 || class == 0x1200 || (class >> 8 == 0x03 && theirs);
}

static void bus_of(hwloc_obj_t pci, char *buf, size_t size)
{
    const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
    snprintf(buf, size, "%04x:%02x:%02x.%01x", (unsigned)a->domain, a->bus, a->dev,
             a->func);
}

static hwloc_obj_t device_below(hwloc_obj_t o, const char *prefix)
{
    for (hwloc_obj_t c = o->io_first_child; c; c = c->next_sibling) {
        hwloc_obj_t deeper;
        if (c->type == HWLOC_OBJ_OS_DEVICE && c->name &&
            !strncmp(c->name, prefix, strlen(prefix)))
            return c;
        if ((deeper = device_below(c, prefix)))
            return deeper;
    }
    return NULL;
}

/* PCI speeds are in GB/s here. */
static double slot_of(hwloc_obj_t pci)
{
    return (double)pci->attr->pcidev.linkspeed * 1e9;
}

/* Steps from 'o' up to what it shares with 'other'; the fewer the nearer. */
static int steps_between(hwloc_obj_t o, hwloc_obj_t other)
{
    int n = 0;
    for (hwloc_obj_t a = o; a; a = a->parent, n++)
        for (hwloc_obj_t b = other; b; b = b->parent)
            if (a == b)
                return n;
    return n;
}

struct devices {
    hwloc_obj_t gpu[TOPT_MOST_GPUS], nic[TOPT_MOST_NICS];
};

static void read_devices(hwloc_topology_t t, struct topt_topology *ret, struct devices *d)
{
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(t, o));) {
        hwloc_obj_t named = device_below(o, "nvml");
        named = named ? named : device_below(o, "cuda");
        named = named ? named : device_below(o, "rsmi");
        if (computes(o) && ret->ngpus < TOPT_MOST_GPUS) {
            struct topt_topology_gpu *g = &ret->gpu[ret->ngpus];
            bus_of(o, g->bus, sizeof g->bus);
            snprintf(g->name, sizeof g->name, "%.47s", named ? named->name : g->bus);
            g->pci = slot_of(o);
            d->gpu[ret->ngpus++] = o;
        }
        int infiniband = o->attr->pcidev.class_id == 0x0207;
        if ((infiniband || o->attr->pcidev.class_id == 0x0200) &&
            ret->nnics < TOPT_MOST_NICS) {
            named = device_below(o, "");
            char bus[16];
            bus_of(o, bus, sizeof bus);
            snprintf(ret->nic[ret->nnics], sizeof ret->nic[0], "%.31s",
                     named ? named->name : bus);
            ret->nic_pci += infiniband ? slot_of(o) : 0;
            d->nic[ret->nnics++] = o;
        }
    }
}

static void find_nearest_nics(struct topt_topology *ret, const struct devices *d)
{
    for (int g = 0; g < ret->ngpus; g++) {
        int best = -1, least = 1 << 20;
        for (int i = 0; i < ret->nnics; i++) {
            int n = steps_between(d->gpu[g], d->nic[i]);
            if (n < least) {
                least = n;
                best = i;
            }
        }
        snprintf(ret->gpu[g].nic, sizeof ret->gpu[g].nic, "%s",
                 best < 0 ? "" : ret->nic[best]);
    }
}

/* ---- which processors -------------------------------------------------------------- */

static void write_set(hwloc_const_bitmap_t set, char *list, char *mask, size_t size)
{
    if (list)
        hwloc_bitmap_list_snprintf(list, size, set);
    if (mask)
        hwloc_bitmap_taskset_snprintf(mask, size, set);
}

/* Ranks whose GPUs are near the same processors share these out. */
static void share_processors(hwloc_topology_t t, struct topt_topology *ret,
                             const struct devices *d)
{
    for (int g = 0; g < ret->ngpus; g++) {
        hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(t, d->gpu[g]);
        int sharing = 0, mine = 0;
        for (int i = 0; i < ret->ngpus; i++) {
            int same = hwloc_get_non_io_ancestor_obj(t, d->gpu[i]) == near;
            mine += same && i < g;
            sharing += same;
        }
        hwloc_cpuset_t *part = calloc((size_t)sharing, sizeof *part);
        if (part && near->cpuset &&
            !hwloc_distrib(t, &near, 1, part, (unsigned)sharing, INT32_MAX, 0)) {
            write_set(part[mine], ret->gpu[g].cpus, ret->gpu[g].mask, TOPT_CPU_LIST);
            for (int i = 0; i < sharing; i++)
                hwloc_bitmap_free(part[i]);
        }
        free(part);
    }
}

int topt_topology_spread(const char *xml, int ranks, char *buf, size_t size,
                         struct topt_error *err)
{
    hwloc_topology_t t;
    size_t at = 0;
    if (ranks < 1 || load(xml, &t, err))
        return -1;
    hwloc_obj_t root = hwloc_get_root_obj(t);
    hwloc_cpuset_t *part = calloc((size_t)ranks, sizeof *part);
    int rc = part && !hwloc_distrib(t, &root, 1, part, (unsigned)ranks, INT32_MAX, 0)
                 ? 0
                 : topt_nomem(err, "the ranks' processors");
    for (int i = 0; i < ranks && !rc; i++) {
        char mask[TOPT_CPU_LIST];
        write_set(part[i], NULL, mask, sizeof mask);
        at += (size_t)snprintf(buf + at, at < size ? size - at : 0, "%s%s", i ? "," : "",
                               mask);
        hwloc_bitmap_free(part[i]);
    }
    free(part);
    hwloc_topology_destroy(t);
    return rc || at < size ? rc : topt_fail(err, TOPT_ERR_LIMIT, "too many ranks");
}

/* ---- NVLinks ----------------------------------------------------------------------- */

/* The GPU that an object of the distances is, by its PCI device; -1: a switch or a package. */
static int gpu_of(const struct devices *d, int n, hwloc_obj_t o)
{
    for (; o && o->type == HWLOC_OBJ_OS_DEVICE; o = o->parent)
        ;
    for (int g = 0; g < n; g++)
        if (d->gpu[g] == o)
            return g;
    return -1;
}

/* Does a link between GPUs and switches lead from one to the other? */
static int links(const struct hwloc_distances_s *m, unsigned i, unsigned j)
{
    hwloc_obj_type_t from = m->objs[i]->type, to = m->objs[j]->type;
    if (from == HWLOC_OBJ_PCI_DEVICE && to == HWLOC_OBJ_PCI_DEVICE)
        return 1;
    return i != j && m->values[i * m->nbobjs + j] &&
           (to == HWLOC_OBJ_OS_DEVICE || to == HWLOC_OBJ_PCI_DEVICE);
}

/* Are all GPUs reached from the first, by links between GPUs and switches? */
static int joined(const struct hwloc_distances_s *m, const struct devices *d, int ngpus)
{
    unsigned n = m->nbobjs;
    uint8_t *seen = calloc(n, 1);
    int reached = 0, grew = seen != NULL;
    for (unsigned i = 0; i < n && grew; i++)
        if (gpu_of(d, ngpus, m->objs[i]) == 0)
            seen[i] = 1;
    while (grew) {
        grew = 0;
        for (unsigned i = 0; i < n; i++)
            for (unsigned j = 0; j < n && seen[i]; j++)
                if (!seen[j] && links(m, i, j))
                    grew = seen[j] = 1;
    }
    for (unsigned i = 0; i < n && seen; i++)
        reached += seen[i] && gpu_of(d, ngpus, m->objs[i]) >= 0;
    free(seen);
    return ngpus > 1 && reached == ngpus;
}

static void read_nvlinks(hwloc_topology_t t, struct topt_topology *ret,
                         const struct devices *d)
{
    struct hwloc_distances_s *m = NULL;
    unsigned n = 1;
    if (hwloc_distances_get_by_name(t, "NVLinkBandwidth", &n, &m, 0) || !n)
        return;
    for (unsigned i = 0; i < m->nbobjs; i++) {
        int g = gpu_of(d, ret->ngpus, m->objs[i]);
        for (unsigned j = 0; j < m->nbobjs && g >= 0; j++)
            if (i != j) /* MB/s */
                ret->gpu[g].nvlink += (double)m->values[i * m->nbobjs + j] * 1e6;
    }
    ret->nvlink_joins_all = joined(m, d, ret->ngpus);
    hwloc_distances_release(t, m);
}

int topt_topology_read(const char *xml, struct topt_topology *ret, struct topt_error *err)
{
    hwloc_topology_t t;
    struct devices d = {{NULL}, {NULL}};
    *ret = (struct topt_topology){.packages = 0};
    if (load(xml, &t, err))
        return -1;
    read_processors(t, ret);
    read_devices(t, ret, &d);
    find_nearest_nics(ret, &d);
    share_processors(t, ret, &d);
    read_nvlinks(t, ret, &d);
    hwloc_topology_destroy(t);
    return 0;
}
#else
static int absent(struct topt_error *err)
{
    return topt_fail(
        err, TOPT_ERR_INVAL,
        "topologies are read by hwloc, and topt was built without libhwloc-dev");
}

int topt_topology_read(const char *xml, struct topt_topology *ret, struct topt_error *err)
{
    (void)xml;
    *ret = (struct topt_topology){.packages = 0};
    return absent(err);
}

int topt_topology_spread(const char *xml, int ranks, char *buf, size_t size,
                         struct topt_error *err)
{
    (void)xml, (void)ranks, (void)buf, (void)size;
    return absent(err);
}
#endif

/* ---- as an object, for other ranks ------------------------------------------------- */

static json_t *gpu_json(const struct topt_topology_gpu *g)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f}", "name", g->name, "bus",
                     g->bus, "cpus", g->cpus, "mask", g->mask, "nic", g->nic, "pci",
                     g->pci, "nvlink", g->nvlink);
}

json_t *topt_topology_to_json(const struct topt_topology *t)
{
    json_t *gpus = json_array(), *nics = json_array();
    for (int i = 0; i < t->ngpus; i++)
        json_array_append_new(gpus, gpu_json(&t->gpu[i]));
    for (int i = 0; i < t->nnics; i++)
        json_array_append_new(nics, json_string(t->nic[i]));
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:o, s:o, s:f, s:i}",
                     "model", t->model, "packages", t->packages, "numa", t->numa, "cores",
                     t->cores, "threads", t->threads, "memory", (json_int_t)t->memory,
                     "l2", (json_int_t)t->l2, "l3", (json_int_t)t->l3, "gpus", gpus,
                     "nics", nics, "nic_pci", t->nic_pci, "joined", t->nvlink_joins_all);
}

#define COPY(field, doc, key)                                                            \
    snprintf(field, sizeof(field), "%s", topt_json_words_at(doc, key))

static void read_gpu(const json_t *doc, struct topt_topology_gpu *g)
{
    COPY(g->name, doc, "name");
    COPY(g->bus, doc, "bus");
    COPY(g->cpus, doc, "cpus");
    COPY(g->mask, doc, "mask");
    COPY(g->nic, doc, "nic");
    g->pci = topt_json_number_at(doc, "pci");
    g->nvlink = topt_json_number_at(doc, "nvlink");
}

int topt_topology_from_json(const json_t *doc, struct topt_topology *ret)
{
    const json_t *gpus = json_object_get(doc, "gpus"),
                 *nics = json_object_get(doc, "nics");
    *ret = (struct topt_topology){.packages = (int)topt_json_whole_at(doc, "packages")};
    ret->ngpus = (int)json_array_size(gpus);
    ret->nnics = (int)json_array_size(nics);
    if (!json_is_object(doc) || ret->ngpus > TOPT_MOST_GPUS ||
        ret->nnics > TOPT_MOST_NICS)
        return -1;
    COPY(ret->model, doc, "model");
    ret->numa = (int)topt_json_whole_at(doc, "numa");
    ret->cores = (int)topt_json_whole_at(doc, "cores");
    ret->threads = (int)topt_json_whole_at(doc, "threads");
    ret->memory = topt_json_whole_at(doc, "memory");
    ret->l2 = topt_json_whole_at(doc, "l2");
    ret->l3 = topt_json_whole_at(doc, "l3");
    ret->nic_pci = topt_json_number_at(doc, "nic_pci");
    ret->nvlink_joins_all = (int)topt_json_whole_at(doc, "joined");
    for (int i = 0; i < ret->ngpus; i++)
        read_gpu(json_array_get(gpus, (size_t)i), &ret->gpu[i]);
    for (int i = 0; i < ret->nnics; i++)
        snprintf(ret->nic[i], sizeof ret->nic[i], "%s",
                 json_string_value(json_array_get(nics, (size_t)i)));
    return 0;
}

/* ---- nodes beside each other ------------------------------------------------------- */

/* What the slowest GPU sends: by its NVLinks where they join all, else by its slot. */
static double node_rate(const struct topt_topology *t)
{
    double least = 0;
    for (int g = 0; g < t->ngpus; g++) {
        double rate = t->nvlink_joins_all ? t->gpu[g].nvlink : t->gpu[g].pci;
        least = g == 0 || rate < least ? rate : least;
    }
    return least;
}

static void say_unlike(struct topt_text *w, const char *what, int64_t here, int64_t there)
{
    if (here != there)
        topt_text_add(w, "%s%s: %lld, not %lld", w->len ? "; " : "", what,
                      (long long)here, (long long)there);
}

/* More than a hundredth apart: memory differs by what firmware takes. */
static int apart(double a, double b)
{
    return a > 1.01 * b || b > 1.01 * a;
}

void topt_topology_unlike(const struct topt_topology *t,
                          const struct topt_topology *other, char *buf, size_t size)
{
    struct topt_text w = {0};
    char here[32], there[32];
    if (strcmp(t->model, other->model))
        topt_text_add(&w, "%s, not %s", *t->model ? t->model : "another processor",
                      *other->model ? other->model : "that");
    say_unlike(&w, "packages", t->packages, other->packages);
    say_unlike(&w, "cores", t->cores, other->cores);
    say_unlike(&w, "threads", t->threads, other->threads);
    say_unlike(&w, "GPUs", t->ngpus, other->ngpus);
    say_unlike(&w, "network adapters", t->nnics, other->nnics);
    if (apart((double)t->memory, (double)other->memory))
        topt_text_add(&w, "%s%s of memory, not %s", w.len ? "; " : "",
                      topt_show_bytes(t->memory, here, sizeof here),
                      topt_show_bytes(other->memory, there, sizeof there));
    if (t->ngpus == other->ngpus && apart(node_rate(t), node_rate(other)))
        topt_text_add(&w, "%sits slowest GPU sends %.3g GB/s, not %.3g",
                      w.len ? "; " : "", node_rate(t) / 1e9, node_rate(other) / 1e9);
    if (t->nnics == other->nnics && apart(t->nic_pci, other->nic_pci))
        topt_text_add(&w, "%sits adapters have %.3g GB/s, not %.3g", w.len ? "; " : "",
                      t->nic_pci / 1e9, other->nic_pci / 1e9);
    snprintf(buf, size, "%s", w.s ? w.s : "");
    topt_text_fini(&w);
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

void topt_topology_lower(struct topt_topology *t, const struct topt_topology *other)
{
    for (int i = 0; i < t->ngpus && i < other->ngpus; i++) {
        t->gpu[i].pci = least(t->gpu[i].pci, other->gpu[i].pci);
        t->gpu[i].nvlink = least(t->gpu[i].nvlink, other->gpu[i].nvlink);
    }
    t->nvlink_joins_all = t->nvlink_joins_all && other->nvlink_joins_all;
    t->nic_pci = least(t->nic_pci, other->nic_pci);
    t->memory = t->memory < other->memory ? t->memory : other->memory;
}

/* ---- as words, and as a profile ---------------------------------------------------- */

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

void topt_topology_words(const struct topt_topology *t, char *buf, size_t size)
{
    char cache[32];
    struct topt_text w = {0};
    topt_text_add(&w, "%d package%s, %d core%s", t->packages, plural(t->packages),
                  t->cores, plural(t->cores));
    if (t->threads != t->cores)
        topt_text_add(&w, " (%d threads)", t->threads);
    if (t->l3 || t->l2)
        topt_text_add(&w, ", L%d %s", t->l3 ? 3 : 2,
                      topt_show_bytes(t->l3 ? t->l3 : t->l2, cache, sizeof cache));
    if (t->ngpus)
        topt_text_add(&w, ", %d GPU%s%s", t->ngpus, plural(t->ngpus),
                      t->nvlink_joins_all ? " joined by NVLink" : "");
    if (t->nnics)
        topt_text_add(&w, ", %d network adapter%s", t->nnics, plural(t->nnics));
    snprintf(buf, size, "%s", w.s ? w.s : "");
    topt_text_fini(&w);
}

static void add_link(json_t *links, const char *level, double rate, double latency,
                     const char *source)
{
    json_array_append_new(links, json_pack("{s:s, s:f, s:f, s:s}", "level", level,
                                           "bytes_per_second", rate, "latency_ns",
                                           latency, "source", source));
}

json_t *topt_topology_profile(const struct topt_topology *t, const char *name,
                              const char *like, int nodes, struct topt_error *err)
{
    char words[256], said[320];
    json_t *links = json_array();
    if (t->ngpus < 1) {
        json_decref(links);
        topt_fail(err, TOPT_ERR_INVAL,
                  "that node has no GPUs; `mpirun topt profile` measures CPU ranks");
        return NULL;
    }
    topt_topology_words(t, words, sizeof words);
    snprintf(said, sizeof said, "a node of %s, as hwloc sees it", words);
    double rate = node_rate(t);
    if (t->ngpus > 1 && rate > 0)
        add_link(links, "node", rate, t->nvlink_joins_all ? 3000 : 10000,
                 t->nvlink_joins_all
                     ? "hwloc: the NVLinks of one GPU added up; latency assumed"
                     : "hwloc: the slowest GPU's PCI slot; latency assumed");
    if (t->nic_pci > 0)
        add_link(links, "cluster", t->nic_pci, 10000,
                 "hwloc: the PCI slots of all InfiniBand adapters, which their ports may "
                 "not reach; latency assumed");
    json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:i, s:o}", "format", "topt-hw/1",
                            "name", name, "description", said, "like", like,
                            "gpus_per_node", t->ngpus, "links", links);
    if (doc && nodes)
        json_object_set_new(doc, "nodes", json_integer(nodes));
    if (!doc)
        topt_nomem(err, "the profile");
    return doc;
}
