# Packages: `cmake --build BUILD --target package` writes a .deb for each component, and one .tar.gz of all of them.
#
# A component is a package of debian/control, of which name, section, description and dependencies are read here;
# dpkg-buildpackage (debian/rules) makes the same packages out of the same components.  The .deb files are for
# /usr; the archive has a prefix of its own: bin, lib, libexec and share lie in its one folder.

set(TOPT_PACKAGES topt toptd libtopt-runtime libtopt-runtime-dev topt-doc)
if(TOPT_HAVE_SLURM)
    list(INSERT TOPT_PACKAGES 2 slurm-spank-topt)
endif()
foreach(package ${TOPT_PACKAGES})
    install(FILES ${PROJECT_SOURCE_DIR}/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
        COMPONENT ${package})
endforeach()

# Completion is made of what the commands' --help print.
if(NOT TOPT_SANITIZE)
    set(completion ${PROJECT_BINARY_DIR}/completion)
    set(programs topt topt-solver topt-client topt-sbatch topt-rightsize topt-runtime)
    foreach(shell bash zsh)
        add_custom_command(OUTPUT ${completion}.${shell}
            COMMAND sh -c "exec sh \"$0\" \"$1\" \"$2\" >\"$3\"" ${PROJECT_SOURCE_DIR}/deploy/completion.sh
                $<TARGET_FILE:topt> ${shell} ${completion}.${shell}
            DEPENDS ${PROJECT_SOURCE_DIR}/deploy/completion.sh ${programs} VERBATIM)
    endforeach()
    add_custom_target(completion ALL DEPENDS ${completion}.bash ${completion}.zsh)
    install(FILES ${completion}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME topt COMPONENT topt)
    foreach(folder site-functions vendor-completions) # where zsh looks; where Debian's does
        install(FILES ${completion}.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${folder} RENAME _topt COMPONENT topt)
    endforeach()
endif()

# The licences of libraries that the programs hold (TOPT_STATIC_LIBS), where the distribution has them.
get_property(archives GLOBAL PROPERTY TOPT_ARCHIVES)
foreach(archive ${archives})
    string(REGEX REPLACE ".*/lib([a-z0-9]+(-c)?).*" "\\1" library ${archive})
    file(GLOB licences /usr/share/doc/*${library}-dev/copyright)
    foreach(licence ${licences})
        install(FILES ${licence} DESTINATION ${CMAKE_INSTALL_DOCDIR}/libraries RENAME ${library} COMPONENT topt)
    endforeach()
endforeach()

set(CPACK_GENERATOR TGZ)
find_program(TOPT_DPKG_SHLIBDEPS dpkg-shlibdeps)
if(TOPT_DPKG_SHLIBDEPS)
    list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_NAME topt)
set(CPACK_PACKAGE_VENDOR "topt developers")
set(CPACK_PACKAGE_CONTACT "topt developers <topt@localhost>")
set(CPACK_PACKAGE_FILE_NAME topt-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_NAME} built using CMake") # its default: packages have their own
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${TOPT_PACKAGES})
set(CPACK_THREADS 0)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# The release of Slurm that a plugin is built for, as dependencies.
set(slurm_depends slurm-client)
if(TOPT_HAVE_SLURM)
    file(STRINGS ${SLURM_SPANK_INCLUDE}/slurm/slurm_version.h line REGEX "define SLURM_VERSION_NUMBER 0x")
    string(REGEX MATCH "0x(..)(..)" line "${line}")
    math(EXPR major "0x${CMAKE_MATCH_1}")
    math(EXPR minor "0x${CMAKE_MATCH_2}")
    math(EXPR next "${minor} + 1")
    foreach(number minor next)
        if(${number} LESS 10)
            set(${number} 0${${number}})
        endif()
    endforeach()
    set(slurm_depends "slurm-client (>= ${major}.${minor}), slurm-client (<< ${major}.${next})")
endif()

# A package's paragraph of debian/control, of which CPack adds the libraries.
file(READ ${PROJECT_SOURCE_DIR}/debian/control control)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/debian/control)
foreach(package ${TOPT_PACKAGES})
    string(TOUPPER ${package} upper)
    set(debian CPACK_DEBIAN_${upper})
    string(REGEX MATCH "Package: ${package}\n.*" paragraph "${control}")
    string(REGEX REPLACE "\n\n.*" "\n" paragraph "${paragraph}")
    foreach(field Architecture Section Depends Recommends Description)
        set(${field} "")
        if(paragraph MATCHES "\n${field}: ([^\n]*(\n [^\n]*)*)")
            set(${field} "${CMAKE_MATCH_1}")
        endif()
    endforeach()
    string(REGEX REPLACE ", *" ";" Depends "${Depends}")
    list(FILTER Depends EXCLUDE REGEX "shlibs:Depends")
    string(REPLACE ";" ", " Depends "${Depends}")
    string(REPLACE "\${slurm:Depends}" "${slurm_depends}" Depends "${Depends}")
    string(REPLACE "\${binary:Version}" "${PROJECT_VERSION}" Depends "${Depends}")
    string(REGEX REPLACE "\n +" "\n" Description "${Description}")
    set(CPACK_COMPONENT_${upper}_DESCRIPTION "${Description}")
    set(${debian}_PACKAGE_NAME ${package})
    set(${debian}_PACKAGE_SECTION science)
    if(Section)
        set(${debian}_PACKAGE_SECTION ${Section})
    endif()
    set(${debian}_PACKAGE_DEPENDS "${Depends}")
    set(${debian}_PACKAGE_RECOMMENDS "${Recommends}")
    set(${debian}_DESCRIPTION "${Description}")
    if(Architecture STREQUAL "all")
        set(${debian}_PACKAGE_ARCHITECTURE all)
    endif()
    # Scripts of its installation, by the names that dpkg knows.
    set(${debian}_PACKAGE_CONTROL_EXTRA "")
    foreach(script postinst prerm postrm)
        if(EXISTS ${PROJECT_SOURCE_DIR}/debian/${package}.${script})
            configure_file(${PROJECT_SOURCE_DIR}/debian/${package}.${script}
                ${PROJECT_BINARY_DIR}/deb-control/${package}/${script} COPYONLY)
            list(APPEND ${debian}_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/deb-control/${package}/${script})
        endif()
    endforeach()
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/deb-control/slurm-spank-topt/conffiles "/etc/slurm/plugstack.conf.d/topt.conf\n")
list(APPEND CPACK_DEBIAN_SLURM-SPANK-TOPT_PACKAGE_CONTROL_EXTRA
    ${PROJECT_BINARY_DIR}/deb-control/slurm-spank-topt/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
