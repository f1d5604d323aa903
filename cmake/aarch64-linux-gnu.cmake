# 64-bit ARM: scripts/test-aarch64.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(FERRITE_TRIPLE aarch64-linux-gnu)
set(FERRITE_QEMU qemu-aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
