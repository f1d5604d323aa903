/* Runs a frozen net on a board and prints one line for each figure. run.py gives STEPS, the number of measured steps,
   and PRINTED, the number of steps whose outputs are printed. */
#include "board.h"
#include "net.h"

#define PAINT 0x5a5aa5a5u

static net instance;
static float x[NET_INPUTS], y[NET_OUTPUTS];
static uint32_t state;

/* The next input, a multiple of 2^-23 between -1 and 1: equal on all boards. */
static float next_input(void) {
  state = state * 1664525u + 1013904223u;
  return (float)((int32_t)(state >> 8) - 0x800000) * (1.0f / 0x800000);
}

static void next_inputs(void) {
  int i;
  for (i = 0; i < NET_INPUTS; ++i) x[i] = next_input();
}

static void print_number(const char* name, uint64_t value) {
  char text[24];
  int i = sizeof text - 1;
  text[i] = 0;
  text[--i] = '\n';
  do text[--i] = (char)('0' + value % 10);
  while (value /= 10);
  board_print(name);
  board_print(" ");
  board_print(text + i);
}

static void print_float(const char* name, float value) {
  union {
    float f;
    uint32_t u;
  } bits;
  char text[10];
  int i;
  bits.f = value;
  for (i = 0; i < 8; ++i) text[i] = "0123456789abcdef"[bits.u >> (28 - 4 * i) & 15];
  text[8] = '\n';
  text[9] = 0;
  board_print(name);
  board_print(" ");
  board_print(text);
}

/* A step of a net that does nothing: what the loop of the measurement costs. */
static __attribute__((noinline, noclone)) int idle(net* n, const float* from, float* to) {
  __asm__ volatile("" ::"r"(n), "r"(from), "r"(to) : "memory");
  return 0;
}

typedef int (*Step)(net*, const float*, float*);

/* Returns the instructions of `steps` calls. */
static __attribute__((noinline, noclone)) uint64_t count(Step volatile step, int32_t steps) {
  board_count_start();
  for (; steps > 0; --steps) {
    next_inputs();
    step(&instance, x, y);
  }
  return board_count();
}

#ifdef LOOP /* an instruction that counts down, then a branch; both are executed n times */
static __attribute__((noinline, noclone)) void loop(uint32_t n) { __asm__ volatile("0:\n" LOOP : "+r"(n)::"cc"); }
#endif

#ifdef STACK
/* Returns the bytes of stack that a call uses below its caller. The stack is painted, and what the call has changed is
   counted. What lies within 64 bytes below this function's own frame is not painted, as the loop needs it. */
static __attribute__((noinline, noclone)) uint32_t stack_of(Step volatile step) {
  uint32_t* const top = (uint32_t*)__builtin_frame_address(0) - 32;
  volatile uint32_t* at;
  const char* here;
  for (at = board_stack_end; at < top; ++at) *at = PAINT;
  step(&instance, x, y);
  for (at = board_stack_end; at < top && *at == PAINT; ++at) {
  }
#ifdef __riscv
  __asm__ volatile("mv %0, sp" : "=r"(here));
#else
  __asm__ volatile("mov %0, sp" : "=r"(here));
#endif
  return (uint32_t)(here - (const char*)at);
}
static int four_steps(net* n, const float* from, float* to) {
  static float xs[4 * NET_INPUTS], ys[4 * NET_OUTPUTS];
  (void)from;
  (void)to;
  return net_steps(n, 4, xs, ys);
}
#endif

int main(void) {
  int32_t i, k;
  uint64_t loop_cost;
  net_init(&instance);
  print_number("check", (uint64_t)(uint32_t)net_check(&instance));

  net_init(&instance);
  state = 1;
  for (i = 0; i < PRINTED; ++i) {
    int error;
    next_inputs();
    error = net_step(&instance, x, y);
    if (error) print_number("error", (uint64_t)(uint32_t)error);
    for (k = 0; k < NET_OUTPUTS; ++k) print_float("output", y[k]);
  }
  print_number("instance_bytes", sizeof(net));

#ifdef STACK
  print_number("stack_step", stack_of(net_step));
  print_number("stack_steps", stack_of(four_steps));
  print_number("stack_idle", stack_of(idle));
#endif
#ifdef LOOP
  board_count_start();
  loop(1000);
  loop_cost = board_count();
  board_count_start();
  loop(1001000);
  print_number("loop", board_count() - loop_cost); /* 2,000,000 if the count is right */
#endif
  net_reset(&instance);
  state = 1;
  loop_cost = count(idle, STEPS);
  state = 1;
  print_number("instructions", count(net_step, STEPS) - loop_cost);
  return 0;
}
