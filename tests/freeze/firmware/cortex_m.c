/* Start-up code of Cortex-M for QEMU. Text goes through semihosting. Instructions are counted with SysTick: under
   `-icount shift=0` an instruction takes 1 ns, so that a tick at CLOCK_HZ is 1e9 / CLOCK_HZ instructions. */
#include "board.h"

#ifndef CLOCK_HZ
#error "CLOCK_HZ is the clock of the processor"
#endif

int main(void);
extern uint32_t stack_top[], data_from[], data_begin[], data_end[], bss_begin[], bss_end[];

enum { SYS_WRITE0 = 0x04, SYS_EXIT = 0x18, SYS_EXIT_EXTENDED = 0x20 };

static void semihost(uint32_t operation, const void* argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void board_print(const char* text) { semihost(SYS_WRITE0, text); }

void board_exit(int code) {
  const uint32_t block[2] = {0x20026, (uint32_t)code}; /* ADP_Stopped_ApplicationExit */
  semihost(SYS_EXIT_EXTENDED, block);
  for (;;) {
  }
}

/* SysTick counts down from 2^24 - 1; its exception counts the rounds. */
#define SYST_CSR (*(volatile uint32_t*)0xe000e010)
#define SYST_RVR (*(volatile uint32_t*)0xe000e014)
#define SYST_CVR (*(volatile uint32_t*)0xe000e018)
static volatile uint32_t rounds;

static void on_tick(void) { ++rounds; }

void board_count_start(void) {
  SYST_CSR = 0;
  SYST_RVR = 0xffffff;
  SYST_CVR = 0;
  rounds = 0;
  SYST_CSR = 7; /* the processor's clock, with the exception */
}

uint64_t board_count(void) {
  uint32_t before, ticks;
  do {
    before = rounds;
    ticks = SYST_CVR;
  } while (before != rounds);
  return (((uint64_t)before << 24) + (0xffffff - ticks)) * 1000 / (CLOCK_HZ / 1000000);
}

void start(void) {
  const uint32_t* from = data_from;
  uint32_t* to;
  for (to = data_begin; to < data_end; ++to, ++from) *to = *from;
  for (to = bss_begin; to < bss_end; ++to) *to = 0;
#ifdef __ARM_FP
  *(volatile uint32_t*)0xe000ed88 |= 0xf << 20; /* CPACR: the floating-point unit is on */
  __asm__ volatile("dsb\n isb" ::: "memory");
#endif
  board_exit(main());
}

static void on_fault(void) {
  board_print("fault\n");
  board_exit(3);
}

__attribute__((section(".vectors"), used)) static const void* const vectors[16] = {
    stack_top,
    (const void*)start,
    (const void*)on_fault,
    (const void*)on_fault,
    (const void*)on_fault,
    (const void*)on_fault,
    (const void*)on_fault,
    0,
    0,
    0,
    0,
    (const void*)on_fault,
    0,
    0,
    (const void*)on_fault,
    (const void*)on_tick,
};
