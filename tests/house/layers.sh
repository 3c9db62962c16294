#!/usr/bin/env bash
# layers.sh ROOT - includes go downward only, by the table below (docs/ARCHITECTURE.md).
#
# A room is a folder of sources.  Every #include "x.h" must name a header of the room itself
# or of a room that it may know; across parts only a topt_*.h may be included.  A file may know
# more than its room: of the planner only plan/free and plan/uniform/uniform.c know the search, of
# model/ only import.c knows every importer.
# Libraries belong to parts, too: only the runtime knows MPI, only the daemon knows HTTP and SQL.
set -euo pipefail
cd "$1"

# room: the rooms it may know (besides itself and the rooms below it)
declare -A knows=(
    [common]=""
    [solver/model]="common"
    [solver/model/operators]="common solver/model"
    [solver/model/graph]="common solver/model solver/model/operators"
    [solver/model/native]="common solver/model solver/model/graph"
    [solver/model/papers]="common solver/model solver/model/graph"
    [solver/model/files]="common solver/model"
    [solver/model/weights]="common solver/model solver/model/graph solver/model/files"
    [solver/model/hf/read]="common solver/model"
    [solver/model/hf/build]="common solver/model solver/model/graph solver/model/hf/read"
    [solver/model/hf]="common solver/model solver/model/hf/read solver/model/hf/build"
    [solver/model/megatron]="common solver/model solver/model/hf/read solver/model/hf/build"
    [solver/model/run]="common solver/model solver/model/megatron"
    [solver/model/onnx]="common solver/model solver/model/graph"
    [solver/model/import.c]="common solver/model solver/model/native solver/model/papers solver/model/files solver/model/weights solver/model/hf solver/model/hf/build solver/model/megatron solver/model/onnx"
    [solver/layout]="common solver/model"
    [solver/schedule]="common"
    [solver/lower]="common solver/model solver/layout solver/schedule"
    [solver/simulate]="common solver/show solver/model solver/layout solver/schedule solver/lower"
    [solver/search]="common"
    [solver/search/problem]="common solver/search"
    [solver/search/factor]="common solver/search solver/search/problem"
    [solver/search/bound]="common solver/search solver/search/problem solver/search/factor"
    [solver/search/dominance]="common solver/search solver/search/problem solver/search/factor"
    [solver/search/presolve]="common solver/search solver/search/problem solver/search/factor solver/search/bound solver/search/dominance"
    [solver/search/drive]="common solver/search solver/search/problem solver/search/factor solver/search/bound solver/search/dominance solver/search/presolve solver/systems/tensoropt"
    [solver/search/io]="common solver/search solver/search/problem"
    [solver/show]="common"
    [solver/allocate]="common"
    [solver/cluster]="common solver/allocate solver/show"
    [solver/plan/space]="common solver/model solver/layout solver/schedule solver/lower"
    [solver/plan/free]="common solver/model solver/layout solver/lower solver/search solver/plan/space"
    [solver/plan/free/space]="common solver/model solver/layout solver/lower solver/plan/space solver/plan/free"
    [solver/plan/free/price]="common solver/model solver/layout solver/lower solver/search solver/plan/space solver/plan/free solver/plan/free/space"
    [solver/plan/free/solve]="common solver/model solver/layout solver/lower solver/search solver/plan/space solver/plan/free solver/plan/free/price"
    [solver/plan/request]="common solver/show solver/model solver/layout solver/lower solver/plan/space solver/plan/free"
    [solver/plan/grid]="common solver/model solver/layout solver/lower solver/plan/space solver/plan/free solver/plan/request"
    [solver/plan/uniform]="common solver/model solver/layout solver/lower solver/plan/space solver/plan/free solver/plan/request solver/plan/grid"
    [solver/plan/uniform/uniform.c]="common solver/model solver/layout solver/lower solver/search solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/plan/uniform"
    [solver/plan/report]="common solver/show solver/model solver/layout solver/lower solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/simulate"
    [solver/plan/ask]="common solver/model solver/layout solver/lower solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/plan/uniform solver/plan/report solver/show solver/simulate"
    [solver/plan/explain]="common solver/model solver/layout solver/lower solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/plan/uniform solver/plan/report solver/plan/ask solver/show solver/simulate"
    [solver/plan/unequal]="common solver/model solver/layout solver/lower solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/plan/uniform solver/plan/report solver/plan/ask"
    [solver/export]="common solver/model solver/layout solver/lower solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/plan/uniform solver/plan/report solver/show solver/simulate"
    [solver/calibrate]="common solver/model solver/layout solver/lower solver/plan/report solver/plan/ask solver/plan/request"
    [solver/launch]="common solver/model solver/schedule"
    [solver/cli]="common solver/model solver/layout solver/lower solver/search solver/search/io solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/plan/uniform solver/plan/report solver/plan/ask solver/plan/explain solver/export solver/calibrate solver/launch solver/show solver/simulate solver/systems/accpar solver/systems/parallax solver/systems/flexflow solver/plan/unequal solver/allocate solver/cluster"
    [runtime]="common solver/model solver/layout solver/lower solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/plan/report solver/plan/ask solver/plan/explain solver/export solver/show"
    [solver/systems/accpar]="common solver/model solver/layout solver/lower solver/search solver/plan/space solver/plan/free solver/plan/request solver/plan/ask"
    [solver/systems/parallax]="common"
    [solver/systems/tensoropt]="common solver/search solver/search/problem"
    [solver/systems/flexflow]="common solver/model solver/layout solver/lower solver/search solver/plan/space solver/plan/free solver/plan/request solver/plan/ask"
    [daemon/config]="common"
    [daemon/access]="common"
    [daemon/site]="common"
    [daemon/rightsize]="common daemon/site solver/allocate"
    [daemon/store]="common daemon"
    [daemon/work]="common daemon/store"
    [daemon/api]="common daemon daemon/config daemon/access daemon/site daemon/store daemon/work solver/show"
    [daemon/net]="common daemon/config daemon/access daemon/site daemon/store daemon/work daemon/api"
    [daemon/worker]="common solver/model solver/layout solver/lower solver/search solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/plan/uniform solver/plan/report solver/plan/ask solver/plan/explain solver/plan/unequal solver/launch solver/cli daemon/work solver/show solver/simulate"
    [daemon/client]="common solver/model solver/layout solver/lower solver/search solver/plan/space solver/plan/free solver/plan/request solver/plan/grid solver/plan/uniform solver/plan/report solver/plan/ask solver/plan/explain solver/cli daemon/api solver/show daemon/site"
    [daemon]="common daemon/config daemon/access daemon/site daemon/store daemon/work daemon/api daemon/net"
    [slurm_plugin]="common"
)
# library header (extended regular expression): the parts that may include it
declare -A library=(
    ['mpi\.h']="runtime"
    ['cblas\.h']="runtime"
    ['pcre2\.h']="runtime"
    ['utf8proc\.h']="runtime"
    ['hwloc\.h']="runtime"
    ['(cuda|nccl|cudnn|cublas).*\.h']="runtime"
    ['microhttpd\.h']="daemon"
    ['sqlite3\.h']="daemon"
    ['coin/.*']="solver"
    ['slurm/.*']="slurm_plugin"
    ['munge\.h']="common"
    ['nettle/.*']="common runtime"
    ['jansson\.h']="common solver runtime daemon"
)
# All that the plugin may know of common: no JSON, since Slurm's has clashing symbols.
plugin_headers="topt_clock.h topt_carry.h topt_elastic.h topt_rendezvous.h topt_error.h topt_fields.h topt_text.h topt_near.h topt_label.h topt_hub.h topt_place.h topt_credential.h topt_munge.h topt_trust.h"

files=() bad=0 checked=0
while IFS= read -r f; do
    files+=("$f")
done < <(find common solver runtime daemon slurm_plugin -name '*.[ch]' 2>/dev/null | sort)

room_of() # FILE: the longest room that holds it, which may be the file alone
{
    room=$1
    while [ -z "${knows[$room]+set}" ]; do
        case $room in
            */*) room=${room%/*} ;;
            *) complain "$1 is in no room of the table" && knows[$room]=" " ;;
        esac
    done
}

complain()
{
    echo "not ok - $*"
    bad=1
}

# Where a header named in FILE is: beside it, in its part, or anywhere.
declare -A places=()
for f in "${files[@]}"; do
    case $f in *.h) places[${f##*/}]+="$f " ;; esac
done
find_header() # FILE NAME
{
    local place part=${1%%/*}
    found=${1%/*}/$2
    [ ! -f "$found" ] || return 0
    for place in ${places[${2##*/}]:-}; do
        found=$place
        case $place in "$part"/*) return 0 ;; esac
    done
    [ -f "$found" ]
}

check_own() # FILE NAME
{
    local mine
    find_header "$1" "$2" || return 0 # made at build time
    room_of "$1" && mine=$room
    room_of "$found"
    checked=$((checked + 1))
    [ "$room" != "$mine" ] || return 0
    case " ${knows[$mine]} " in
        *" $room "*) ;;
        *) complain "$1 includes $2: $mine may not know $room" ;;
    esac
    case ${2##*/} in
        topt_*) ;;
        *) [ "${found%%/*}" = "${1%%/*}" ] || complain "$1 includes $2: another part's private header" ;;
    esac
    if [ "$mine" = slurm_plugin ]; then
        case " $plugin_headers " in
            *" ${2##*/} "*) ;;
            *) complain "$1 includes $2: the plugin may know only $plugin_headers" ;;
        esac
    fi
}

check_library() # FILE NAME
{
    local pattern
    for pattern in "${!library[@]}"; do
        [[ $2 =~ ^$pattern$ ]] || continue
        case " ${library[$pattern]} " in
            *" ${1%%/*} "*) ;;
            *) complain "$1 includes <$2>: only for ${library[$pattern]}" ;;
        esac
    done
}

while IFS=: read -r file line; do
    name=${line#*[<\"]}
    name=${name%%[>\"]*}
    case $line in
        *'"'*) check_own "$file" "$name" ;;
        *) check_library "$file" "$name" ;;
    esac
done < <(grep -HE '^ *# *include *[<"]' "${files[@]}" | sort -u)
[ $bad = 1 ] || echo "ok - $checked includes in ${#files[@]} files go downward"
exit $bad
