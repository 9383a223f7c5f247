# Outside projects that use the SDK in each way it can be had: tests/consume/<way>, all with the same
# main.cpp. The archive is this build's; the shared library that which the fetch project builds.

set(consume_dir ${CMAKE_CURRENT_SOURCE_DIR}/consume)
set(work_dir ${CMAKE_CURRENT_BINARY_DIR}/consume)
set(static_prefix ${work_dir}/static_prefix)
set(shared_prefix ${work_dir}/shared_prefix)

# consume(<name> <project> [TARGETS <target>...] [OPTIONS <-D...>...]): configures, builds, runs.
function(consume name project)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "TARGETS;OPTIONS")
  list(TRANSFORM arg_TARGETS PREPEND "--build-target;")
  add_test(NAME consume_${name}
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${consume_dir}/${project} ${work_dir}/${name}
                   --build-generator ${CMAKE_GENERATOR} --build-noclean ${arg_TARGETS}
                   --build-options -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
                     -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
                     -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
                     -DINCIPIT_SOURCE=${PROJECT_SOURCE_DIR} ${arg_OPTIONS}
                   --test-command ${work_dir}/${name}/consumer)
endfunction()

# Prefixes start empty: what an earlier version installed must not be found.
add_test(NAME consume_install
         COMMAND sh -c "rm -rf '${work_dir}'/*_prefix && '${CMAKE_COMMAND}' --install '${PROJECT_BINARY_DIR}' --prefix '${static_prefix}' --component incipit")
set_tests_properties(consume_install PROPERTIES FIXTURES_SETUP static_prefix)

consume(package package TARGETS all headers OPTIONS -Dincipit_ROOT=${static_prefix})
set_tests_properties(consume_package PROPERTIES FIXTURES_REQUIRED static_prefix)

# The development packages of curl and simdjson are not looked for.
consume(package_shared package OPTIONS -Dincipit_ROOT=${shared_prefix}
        -DCMAKE_DISABLE_FIND_PACKAGE_CURL=ON -DCMAKE_DISABLE_FIND_PACKAGE_simdjson=ON)
set_tests_properties(consume_package_shared PROPERTIES FIXTURES_REQUIRED shared_prefix)

# With the warnings of this build, so that ccache knows the objects.
consume(fetch fetch TARGETS all install
        OPTIONS -DINCIPIT_WARNINGS=ON -DBUILD_SHARED_LIBS=ON -DINCIPIT_INSTALL=ON -DCMAKE_INSTALL_PREFIX=${shared_prefix}
                -DCMAKE_INSTALL_LIBDIR=${CMAKE_INSTALL_LIBDIR})
set_tests_properties(consume_fetch PROPERTIES FIXTURES_SETUP shared_prefix FIXTURES_REQUIRED static_prefix)
silence_test(silence_shared ${shared_prefix}/${CMAKE_INSTALL_LIBDIR}/libincipit.so)
set_tests_properties(silence_shared PROPERTIES FIXTURES_REQUIRED shared_prefix)

consume(subdir subdir OPTIONS -DCMAKE_BUILD_TYPE=)  # not optimised: it is the slowest to compile

foreach(kind static shared)
  file(MAKE_DIRECTORY ${work_dir}/pkgconfig_${kind})
  add_test(NAME consume_pkgconfig_${kind}
           COMMAND ${consume_dir}/pkgconfig/check.sh
           WORKING_DIRECTORY ${work_dir}/pkgconfig_${kind})
  set_tests_properties(consume_pkgconfig_${kind} PROPERTIES FIXTURES_REQUIRED ${kind}_prefix
    ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER};PKG_CONFIG_PATH=${${kind}_prefix}/${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
