# 64-bit RISC-V: scripts/test-machines riscv64.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(FERRITE_TRIPLE riscv64-linux-gnu)
set(FERRITE_QEMU qemu-riscv64)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
