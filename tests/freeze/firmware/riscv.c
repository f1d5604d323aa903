/* Start-up code of 32-bit RISC-V for QEMU's machine virt, in machine mode. Text goes through semihosting. Instructions
   are counted with minstret. */
#include "board.h"

int main(void);
extern uint32_t bss_begin[], bss_end[];

enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20 };

/* The three instructions are a semihosting call if none is compressed and all are on one page. */
static __attribute__((noinline)) void semihost(uint32_t operation, const void* argument) {
  register uint32_t a0 __asm__("a0") = operation;
  register const void* a1 __asm__("a1") = argument;
  __asm__ volatile(
      ".balign 16\n"
      ".option push\n"
      ".option norvc\n"
      "slli x0, x0, 0x1f\n"
      "ebreak\n"
      "srai x0, x0, 7\n"
      ".option pop\n"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
}

void board_print(const char* text) { semihost(SYS_WRITE0, text); }

void board_exit(int code) {
  const uint32_t block[2] = {0x20026, (uint32_t)code}; /* ADP_Stopped_ApplicationExit */
  semihost(SYS_EXIT_EXTENDED, block);
  for (;;) {
  }
}

static uint64_t retired(void) {
  uint32_t high, low, again;
  do {
    __asm__ volatile(
        ".option push\n"
        ".option arch, +zicsr\n"
        "csrr %0, minstreth\n"
        "csrr %1, minstret\n"
        "csrr %2, minstreth\n"
        ".option pop\n"
        : "=r"(high), "=r"(low), "=r"(again));
  } while (high != again);
  return (uint64_t)high << 32 | low;
}

static uint64_t began;
void board_count_start(void) { began = retired(); }
uint64_t board_count(void) { return retired() - began; }

static void __attribute__((noreturn, used)) start(void) {
  uint32_t* to;
  for (to = bss_begin; to < bss_end; ++to) *to = 0;
  board_exit(main());
  for (;;) {
  }
}

__attribute__((aligned(4), used)) static void on_trap(void) {
  board_print("fault\n");
  board_exit(3);
}

__attribute__((naked, section(".start"), used)) void begin(void) {
  __asm__ volatile(
      ".option push\n"
      ".option arch, +zicsr\n"
      ".option norelax\n"
      "la gp, __global_pointer$\n"
      "la sp, stack_top\n"
      "la t0, on_trap\n"
      "csrw mtvec, t0\n"
#ifdef __riscv_flen
      "li t0, 0x2000\n"
      "csrs mstatus, t0\n" /* the floating-point unit is on */
      "csrw fcsr, x0\n"
#endif
      "j start\n"
      ".option pop\n");
}
