# gdrbench_module(NAME [USES MODULE…] [SOURCES FILE…] [DIRECTORY FOLDER])
#
# A folder of sources as a target of its own, gdrbench_NAME, whose objects become part of gdrbench::core, and its headers
# as gdrbench_NAME_headers, which others reach by "NAME/file.hpp". A module sees the headers of those it USES, and of
# those that they use; any other include fails to compile, so that dependencies cannot turn upward unnoticed. To that
# end each module's headers are reached through a folder of their own in the build tree.
function(gdrbench_headers name folder)
  set(view ${PROJECT_BINARY_DIR}/modules/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${folder} ${view}/${name} SYMBOLIC)
  add_library(gdrbench_${name}_headers INTERFACE)
  target_include_directories(gdrbench_${name}_headers INTERFACE ${view})
  foreach(used ${ARGN})
    target_link_libraries(gdrbench_${name}_headers INTERFACE gdrbench_${used}_headers)
  endforeach()
endfunction()

function(gdrbench_module name)
  cmake_parse_arguments(PARSE_ARGV 1 module "" "" "USES;SOURCES")
  gdrbench_headers(${name} ${CMAKE_CURRENT_SOURCE_DIR} ${module_USES})
  target_include_directories(gdrbench_${name}_headers INTERFACE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(gdrbench_${name}_headers
    INTERFACE Threads::Threads nlohmann_json::nlohmann_json fmt::fmt OpenSSL::Crypto PkgConfig::verbs PkgConfig::rdmacm)
  if(module_SOURCES)
    add_library(gdrbench_${name} OBJECT ${module_SOURCES})
    target_link_libraries(gdrbench_${name} PRIVATE gdrbench_${name}_headers)
    target_sources(gdrbench_core PRIVATE $<TARGET_OBJECTS:gdrbench_${name}>)
  endif()
endfunction()
