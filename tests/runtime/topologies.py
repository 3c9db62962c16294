#!/usr/bin/env python3
"""topologies.py pairs|switches|apart|cpu|half - a node as hwloc would export it: two packages of two cores with two threads, below each a
display adapter that computes nothing, two GPUs and an InfiniBand adapter.  NVLinks: 25 GB/s between all GPUs and each other; of
each GPU to one of two switches of its package, 50 GB/s; or only between the GPUs of a package.  cpu: without devices; half: and of one
package."""

import sys

GPU = '<object type="OSDev" gp_index="%d" name="nvml%d" osdev_type="1"/>'
EMPTY = 'cpuset="0x%x" complete_cpuset="0x%x" nodeset="0x%x" complete_nodeset="0x%x" gp_index="%d"'


def pci(index, bus, kind, speed, inside=""):
    return ('<object type="PCIDev" gp_index="%d" pci_busid="0000:%02x:00.0" pci_type="%s [0000:0000] a1" pci_link_speed="%g">%s</object>'
            % (index, bus, kind, speed, inside))


def package(p, gpus):
    cpus, numa = 0xf << 4 * p, 1 << p
    out = '<object type="Package" os_index="%d" %s>' % (p, EMPTY % (cpus, cpus, numa, numa, 100 * p + 10))
    out += '<info name="CPUModel" value="a processor"/>'
    out += '<object type="NUMANode" os_index="%d" %s local_memory="17179869184"/>' % (
        p, EMPTY % (cpus, cpus, numa, numa, 100 * p + 11))
    out += '<object type="L3Cache" %s cache_size="16777216" depth="3" cache_linesize="64" cache_associativity="0" cache_type="0">' % (
        EMPTY % (cpus, cpus, numa, numa, 100 * p + 12))
    for core in range(2):
        both = 3 << 4 * p + 2 * core
        out += '<object type="Core" os_index="%d" %s>' % (
            2 * p + core, EMPTY % (both, both, numa, numa, 100 * p + 20 + core))
        for thread in range(2):
            cpu = 4 * p + 2 * core + thread
            out += '<object type="PU" os_index="%d" %s/>' % (
                cpu, EMPTY % (1 << cpu, 1 << cpu, numa, numa, 100 * p + 30 + 2 * core + thread))
        out += '</object>'
    out += '</object>'
    if gpus:
        bus = 0x10 * (p + 1)
        out += ('<object type="Bridge" gp_index="%d" bridge_type="0-1" depth="0" bridge_pci="0000:[%02x-%02x]">' %
                (100 * p + 40, bus, bus + 15))
        out += pci(100 * p + 41, bus, "0300 [1a03:2000]", 0)
        for i in range(2):
            out += pci(100 * p + 50 + i, bus + 1 + i, "0302 [10de:20b0]", 31.5,
                       GPU % (100 * p + 60 + i, 2 * p + i))
        out += pci(100 * p + 70, bus + 4, "0207 [15b3:101b]", 25,
                   '<object type="OSDev" gp_index="%d" name="mlx5_%d" osdev_type="3"/>' % (100 * p + 71, p))
        for i in range(2 if gpus == "switches" else 0):
            out += pci(100 * p + 80 + i, bus + 6 + i, "0680 [10de:1af1]", 1)
        out += '</object>'
    return out + '</object>'


def links(kind):
    """Objects of the distances, and MB/s from one to another."""
    gpus = [100 * p + 60 + i for p in range(2) for i in range(2)]
    objects = ["OSDev:%d" % g for g in gpus]
    if kind == "switches":
        objects += ["PCIDev:%d" % (100 * p + 80 + i) for p in range(2) for i in range(2)]
    rate = [[0] * len(objects) for _ in objects]
    for i in range(4):
        for j in range(len(objects)):
            near = i // 2 == (j if j < 4 else j - 4) // 2
            if i != j and ((kind == "pairs" and j < 4) or (kind == "apart" and near) or
                           (kind == "switches" and j >= 4 and near)):
                rate[i][j] = rate[j][i] = 50000 if kind == "switches" else 25000
    return objects, [x for row in rate for x in row]


def main():
    kind = sys.argv[1]
    devices = kind not in ("cpu", "half") and kind
    cpus, nodes = (0xf, 1) if kind == "half" else (0xff, 3)
    print('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">')
    print('<object type="Machine" os_index="0" allowed_cpuset="0x%x" allowed_nodeset="0x%x" %s>' %
          (cpus, nodes, EMPTY % (cpus, cpus, nodes, nodes, 1)))
    print(package(0, devices) + (package(1, devices) if kind != "half" else "") + "</object>")
    if devices:
        objects, values = links(kind)
        names, numbers = " ".join(objects) + " ", " ".join(map(str, values)) + " "
        print('<distances2hetero nbobjs="%d" kind="25" name="NVLinkBandwidth">' % len(objects))
        print('<indexes length="%d">%s</indexes>' % (len(names), names))
        print('<u64values length="%d">%s</u64values></distances2hetero>' % (len(numbers), numbers))
    print("</topology>")


main()
