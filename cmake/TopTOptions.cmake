# Build options, compiler flags and the packages that every part may need.
#
# An optional part is AUTO (built where its packages are), ON (fails hard where they are
# not) or OFF.  The summary at the end of configuring says what was found.
include(GNUInstallDirs)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

foreach(part MPI CUDA SLURM ONNX MUNGE PCRE2 UTF8PROC HWLOC CBC)
    set(TOPT_${part} AUTO CACHE STRING "Build the ${part} part: AUTO, ON or OFF")
    set_property(CACHE TOPT_${part} PROPERTY STRINGS AUTO ON OFF)
endforeach()
set(TOPT_STATIC_LIBS OFF CACHE STRING "Programs hold their small libraries: AUTO (those that have an archive here), ON (all) or OFF")
set_property(CACHE TOPT_STATIC_LIBS PROPERTY STRINGS AUTO ON OFF)
set(TOPT_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them: address,undefined or thread")
option(TOPT_WERROR "Warnings are errors" OFF)
option(TOPT_TESTS "Build the tests, too" ON)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # POSIX and GNU library calls, not language extensions
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
# The programs that 'topt' dispatches to.
set(TOPT_LIBEXEC_DIR ${PROJECT_BINARY_DIR}/libexec/topt)
set(TOPT_INSTALL_LIBEXEC ${CMAKE_INSTALL_LIBEXECDIR}/topt)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

add_library(topt_flags INTERFACE)
target_compile_definitions(topt_flags INTERFACE _GNU_SOURCE)
# -ffp-contract=off: costs are compared with ==, so no compiler may fuse multiply and add.
target_compile_options(topt_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wshadow
    -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2)
if(TOPT_WERROR)
    target_compile_options(topt_flags INTERFACE -Werror)
endif()
if(TOPT_SANITIZE)
    # gcc's maybe-uninitialized is unreliable in sanitized code; the other builds have it.
    target_compile_options(topt_flags INTERFACE -fsanitize=${TOPT_SANITIZE}
        -fno-omit-frame-pointer -fno-sanitize-recover=all
        $<$<C_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>)
    target_link_options(topt_flags INTERFACE -fsanitize=${TOPT_SANITIZE})
endif()

pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)

# topt_static(NAME NEEDS...): programs hold PkgConfig::NAME, a library whose name differs between distributions or
# that a bare one lacks, where TOPT_STATIC_LIBS asks for it; NEEDS are what its archive needs beside libc.  Modules and
# shared libraries keep the shared one, as archives need not be position independent.
function(topt_static name)
    if(TOPT_STATIC_LIBS STREQUAL "OFF" OR NOT ${name}_FOUND)
        return()
    endif()
    list(GET ${name}_LIBRARIES 0 library)
    find_library(TOPT_ARCHIVE_${name} lib${library}.a HINTS ${${name}_LIBRARY_DIRS})
    mark_as_advanced(TOPT_ARCHIVE_${name})
    if(TOPT_ARCHIVE_${name})
        get_target_property(shared PkgConfig::${name} INTERFACE_LINK_LIBRARIES)
        set(program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
        set_target_properties(PkgConfig::${name} PROPERTIES INTERFACE_LINK_LIBRARIES
            "$<${program}:${TOPT_ARCHIVE_${name}};${ARGN}>;$<$<NOT:${program}>:${shared}>")
        set_property(GLOBAL APPEND PROPERTY TOPT_ARCHIVES ${TOPT_ARCHIVE_${name}})
    elseif(TOPT_STATIC_LIBS STREQUAL "ON")
        message(FATAL_ERROR "TOPT_STATIC_LIBS=ON, but lib${library}.a was not found")
    endif()
endfunction()
topt_static(JANSSON)
topt_static(NETTLE)
topt_static(SQLITE m)

# topt_part(NAME FOUND "reason"): sets TOPT_HAVE_NAME and TOPT_WHY_NAME from the option.
function(topt_part name found why)
    set(have OFF)
    if(TOPT_${name} STREQUAL "OFF")
        set(why "switched off")
    elseif(found)
        set(have ON)
        set(why "")
    elseif(TOPT_${name} STREQUAL "ON")
        message(FATAL_ERROR "TOPT_${name}=ON, but ${why}")
    endif()
    set(TOPT_HAVE_${name} ${have} CACHE INTERNAL "")
    set(TOPT_WHY_${name} "${why}" CACHE INTERNAL "")
endfunction()

set(mpi_found OFF)
if(NOT TOPT_MPI STREQUAL "OFF")
    set(MPI_CXX_SKIP_MPICXX TRUE)
    find_package(MPI QUIET COMPONENTS C)
    pkg_check_modules(OPENBLAS QUIET IMPORTED_TARGET openblas)
    if(MPI_C_FOUND AND OPENBLAS_FOUND)
        set(mpi_found ON)
    endif()
endif()
topt_part(MPI "${mpi_found}" "Open MPI or OpenBLAS was not found")

# The module needs nvcc, a C++ compiler behind it, and cuBLASLt; a GPU only to run.  Sanitizers
# look at it on the CPU (tests/cuda).
set(cuda_found OFF)
set(cuda_why "nvcc was not found")
if(TOPT_SANITIZE)
    set(cuda_why "not in sanitized builds")
elseif(NOT TOPT_CUDA STREQUAL "OFF")
    find_program(TOPT_NVCC nvcc HINTS /usr/local/cuda/bin)
    if(TOPT_NVCC AND NOT DEFINED CMAKE_CUDA_COMPILER)
        set(CMAKE_CUDA_COMPILER ${TOPT_NVCC})
    endif()
    if(TOPT_NVCC AND NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES 75 80 90) # every nvcc from 11.8 on knows these
    endif()
    if(TOPT_NVCC)
        include(CheckLanguage)
        check_language(CUDA)
        set(cuda_why "nvcc does not compile (it needs g++)")
    endif()
    if(TOPT_NVCC AND CMAKE_CUDA_COMPILER)
        enable_language(CUDA)
        find_package(CUDAToolkit QUIET)
        set(cuda_why "cuBLASLt was not found")
        if(TARGET CUDA::cublasLt)
            set(cuda_found ON)
        endif()
    endif()
endif()
topt_part(CUDA "${cuda_found}" "${cuda_why}")

set(slurm_found OFF)
find_path(SLURM_SPANK_INCLUDE slurm/spank.h)
if(SLURM_SPANK_INCLUDE)
    set(slurm_found ON)
endif()
topt_part(SLURM "${slurm_found}" "slurm/spank.h was not found")

pkg_check_modules(MUNGE QUIET IMPORTED_TARGET munge)
topt_part(MUNGE "${MUNGE_FOUND}" "libmunge-dev was not found")
topt_static(MUNGE)

pkg_check_modules(PROTOBUFC QUIET IMPORTED_TARGET libprotobuf-c)
find_program(TOPT_PROTOC_C protoc-c)
find_path(TOPT_ONNX_PROTO onnx/onnx.proto)
set(onnx_found OFF)
if(PROTOBUFC_FOUND AND TOPT_PROTOC_C AND TOPT_ONNX_PROTO)
    set(onnx_found ON)
endif()
topt_part(ONNX "${onnx_found}" "libonnx-dev, protobuf-c-compiler or libprotobuf-c-dev was not found")
topt_static(PROTOBUFC)

# Patterns of tokenizers; without it these are refused.
pkg_check_modules(PCRE2 QUIET IMPORTED_TARGET libpcre2-8)
topt_part(PCRE2 "${PCRE2_FOUND}" "libpcre2-dev was not found")
topt_static(PCRE2)

# Normal forms and classes of characters, for tokenizers that change them.
pkg_check_modules(UTF8PROC QUIET IMPORTED_TARGET libutf8proc)
topt_part(UTF8PROC "${UTF8PROC_FOUND}" "libutf8proc-dev was not found")
topt_static(UTF8PROC)

# What nodes are made of, for `topt profile`.
pkg_check_modules(HWLOC QUIET IMPORTED_TARGET hwloc)
topt_part(HWLOC "${HWLOC_FOUND}" "libhwloc-dev was not found")

# Better plans of a queue, by a program of their own.
pkg_check_modules(CBC QUIET IMPORTED_TARGET cbc)
topt_part(CBC "${CBC_FOUND}" "coinor-libcbc-dev was not found")

function(topt_print_summary)
    message(STATUS "topt ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, ${CMAKE_C_COMPILER_ID}"
        " ${CMAKE_C_COMPILER_VERSION}, sanitizers: ${TOPT_SANITIZE}")
    get_property(archives GLOBAL PROPERTY TOPT_ARCHIVES)
    list(TRANSFORM archives REPLACE ".*/lib(.*)\\.a" "\\1")
    string(JOIN ", " archives ${archives})
    message(STATUS "  libraries in programs: ${archives}")
    foreach(part MPI CUDA SLURM ONNX MUNGE PCRE2 UTF8PROC HWLOC CBC)
        if(TOPT_HAVE_${part})
            message(STATUS "  ${part}: yes")
        else()
            message(STATUS "  ${part}: no (${TOPT_WHY_${part}})")
        endif()
    endforeach()
endfunction()
