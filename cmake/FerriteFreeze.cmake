# Nets as C in a build: ferrite_freeze(<target> <model> [NAME <name>] [OPTIONS <option>...])
#
# Writes a net as one C source when the target is built, compiles it with the target, and puts its header, <name>.h, into
# the target's include path. <model> is a file that `ferrite freeze` reads, or a network in words. A file may be relative
# to the current source folder; the net is written again when the file changes. The names in C begin with NAME, by
# default the file's name without its endings, "net" for a network in words. OPTIONS go to `ferrite freeze`:
#
#   add_executable(station station.c)
#   ferrite_freeze(station detector.safetensors OPTIONS --block 0)  # station.c includes "detector.h"
#
# Call it in the folder that adds the target. The program is the target Ferrite::tool, unless FERRITE_TOOL names
# another; that of this machine is looked for when cross-compiling, and where Ferrite was built without it. A project
# without the language C compiles the source as C++.
function(ferrite_freeze target model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAME" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ferrite_freeze: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  ferrite_freeze_program(program)
  set(inputs)
  set(name net)
  cmake_path(ABSOLUTE_PATH model BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE file)
  if(NOT model MATCHES "\\(")
    set(model "${file}")
    set(inputs "${file}")
    cmake_path(GET file STEM name)
    string(MAKE_C_IDENTIFIER "${name}" name)
    string(TOLOWER "${name}" name)
  endif()
  if(arg_NAME)
    set(name "${arg_NAME}")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/ferrite_freeze/${target}")
  file(MAKE_DIRECTORY "${folder}")
  set(source "${folder}/${name}.c")
  add_custom_command(OUTPUT "${source}" "${folder}/${name}.h" DEPENDS ${program} ${inputs}
    COMMAND ${program} freeze "${model}" -o "${source}" --name "${name}" ${arg_OPTIONS}
    COMMENT "Freezing ${name}" VERBATIM)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "C" IN_LIST languages)
    set_source_files_properties("${source}" PROPERTIES LANGUAGE CXX)
  endif()
  target_sources(${target} PRIVATE "${source}" "${folder}/${name}.h")
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()

# Sets `result` to the target or the path of the program ferrite.
function(ferrite_freeze_program result)
  if(NOT FERRITE_TOOL AND TARGET Ferrite::tool AND NOT CMAKE_CROSSCOMPILING)
    set(${result} Ferrite::tool PARENT_SCOPE)
    return()
  endif()
  find_program(FERRITE_TOOL ferrite DOC "The program ferrite of this machine, for ferrite_freeze")
  if(NOT FERRITE_TOOL)
    message(FATAL_ERROR "ferrite_freeze needs the program ferrite: install it, set FERRITE_TOOL to its path, or, with "
                        "add_subdirectory, set FERRITE_BUILD_TOOLS to ON before")
  endif()
  set(${result} "${FERRITE_TOOL}" PARENT_SCOPE)
endfunction()
