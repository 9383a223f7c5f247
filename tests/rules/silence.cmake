# Fails when the SDK can print, end the process or keep state of its own: a library does none of it.
# Run as: cmake -DNM=<nm> -DOBJDUMP=<objdump> -DLIBRARY=<libincipit.a or .so> -P silence.cmake

# read_symbols(<result> <command>...): its lines, as a list. Demangled names hold brackets and
# semicolons, which would end a list's element.
function(read_symbols result)
  execute_process(COMMAND ${ARGN} ${LIBRARY} OUTPUT_VARIABLE output RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR output STREQUAL "")
    message(FATAL_ERROR "silence: ${ARGV1} could not read ${LIBRARY}")
  endif()
  string(REGEX REPLACE "[][;]" "_" output "${output}")
  string(REPLACE "\n" ";" output "${output}")
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

# A shared library has the run-time's own references in its static symbol table: only the dynamic one counts.
set(dynamic)
if(LIBRARY MATCHES "\\.so")
  set(dynamic --dynamic)
endif()
set(printing "std::w?(cout|cerr|clog)|(__)?v?[fd]?w?printf(_chk)?|f?puts|f?putws?|f?putw?c(har)?|_IO_putc|fwrite|perror|stdout|stderr|v?syslog")
set(ending "_?exit|_Exit|quick_exit|abort|raise|kill")
read_symbols(undefined ${NM} ${dynamic} --undefined-only --demangle)
foreach(line IN LISTS undefined)
  if(line MATCHES " [Uw] (${printing}|${ending})(@.*)?$")
    message(SEND_ERROR "silence: the SDK refers to ${CMAKE_MATCH_1}")
  endif()
endforeach()

# What is in .data and .bss can change. .data.rel.ro cannot; DW.ref. is the compiler's.
read_symbols(defined ${OBJDUMP} --syms --demangle)
foreach(line IN LISTS defined)
  if(line MATCHES " O (\\.t?(data|bss)[^ \t]*)[ \t]+[0-9a-f]+ +(\\.hidden +)?(.*)$")
    set(section "${CMAKE_MATCH_1}")
    set(name "${CMAKE_MATCH_4}")
    if(NOT section MATCHES "^\\.data\\.rel\\.ro" AND NOT name MATCHES "^DW\\.ref\\.")
      message(SEND_ERROR "silence: the SDK keeps ${name} in ${section}")
    endif()
  endif()
endforeach()
message(STATUS "silence: looked through ${LIBRARY}")
