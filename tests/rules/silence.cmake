# Fails when the SDK archive can print or end the process: a library does neither.
# Run as: cmake -DNM=<nm> -DARCHIVE=<libincipit_sdk.a> -P silence.cmake
execute_process(COMMAND ${NM} --undefined-only --demangle ${ARCHIVE}
                OUTPUT_VARIABLE symbols RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "silence: nm could not read ${ARCHIVE}")
endif()
foreach(symbol "std::cout" "std::cerr" "printf" "puts" "stdout" "stderr" "exit" "abort" "_Exit")
  if(symbols MATCHES "(^|\n| )U ${symbol}(@|\n|$)")
    message(FATAL_ERROR "silence: the SDK refers to ${symbol}")
  endif()
endforeach()
message(STATUS "silence: the SDK neither prints nor exits")
