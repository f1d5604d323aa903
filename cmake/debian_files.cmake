# Run by cpack on what is about to be packed: adds the files that Debian asks for (copyright, changelogs), compresses manual
# pages, and strips libraries and programs. Times are those of SOURCE_DATE_EPOCH if it is set.
cmake_policy(VERSION 3.25)
set(source "${CMAKE_CURRENT_LIST_DIR}/..")

function(compress file)
  execute_process(COMMAND gzip -9nf "${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER "${component}" upper)
  set(package "${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  set(root "${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}")
  if(NOT IS_DIRECTORY "${root}")
    message(FATAL_ERROR "nothing was installed as ${component}: no folder ${root}")
  endif()
  set(documents "${root}/share/doc/${package}")
  file(MAKE_DIRECTORY "${documents}")
  file(COPY_FILE "${source}/packaging/debian/copyright" "${documents}/copyright")
  file(COPY_FILE "${source}/CHANGELOG.md" "${documents}/changelog")
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE "${documents}/changelog.Debian" "ferrite (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Packed by CPack; changelog.gz lists what has changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  compress("${documents}/changelog")
  compress("${documents}/changelog.Debian")
  file(GLOB pages "${root}/share/man/man*/*.[0-9]")
  foreach(page ${pages})
    compress("${page}")
  endforeach()
  file(GLOB_RECURSE libraries "${root}/lib/*.a")
  foreach(library ${libraries})
    execute_process(COMMAND strip --strip-debug --enable-deterministic-archives "${library}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(GLOB_RECURSE programs "${root}/bin/*")
  file(GLOB_RECURSE shared "${root}/lib/*.so.*")
  foreach(file ${programs} ${shared})
    if(NOT IS_SYMLINK "${file}")
      execute_process(COMMAND strip --strip-unneeded "${file}" COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()
  # As any umask would have it.
  file(CHMOD_RECURSE "${root}" FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
       DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  foreach(program ${programs})
    file(CHMOD "${program}" FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
endforeach()
