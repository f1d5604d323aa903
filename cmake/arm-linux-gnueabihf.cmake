# 32-bit ARM, version 7, with a floating-point unit: scripts/test-machines armv7.
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(FERRITE_TRIPLE arm-linux-gnueabihf)
set(FERRITE_QEMU qemu-arm)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
