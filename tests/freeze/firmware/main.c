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
static inline uint32_t* stack_pointer(void) {
  uint32_t* pointer;
#ifdef __riscv
  __asm__ volatile("mv %0, sp" : "=r"(pointer));
#else
  __asm__ volatile("mov %0, sp" : "=r"(pointer));
#endif
  return pointer;
}

/* Returns the bytes of stack that a call uses. What lies below this function's frame is painted, and counted down to
   the lowest word that the call has changed. The loops call nothing, so that they do not use it. */
static __attribute__((noinline, noclone)) uint32_t stack_of(Step volatile step) {
  uint32_t* const top = stack_pointer();
  volatile uint32_t* at;
  for (at = board_stack_end; at < top; ++at) *at = PAINT;
  step(&instance, x, y);
  for (at = board_stack_end; at < top && *at == PAINT; ++at) {
  }
  return (uint32_t)((const char*)top - (const char*)at);
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
  uint64_t idle_cost;
#ifdef LOOP
  static const volatile uint32_t loop_lengths[2] = {1000, 1001000};
  uint64_t loop_costs[2];
#endif
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
  print_number("stack_idle", stack_of(idle)); /* 0 if the count is right */
#endif
#ifdef LOOP
  for (i = 0; i < 2; ++i) {
    const uint32_t length = loop_lengths[i];
    board_count_start();
    loop(length);
    loop_costs[i] = board_count();
  }
  print_number("loop", loop_costs[1] - loop_costs[0]); /* 2,000,000 if the count is right */
#endif
  net_reset(&instance);
  state = 1;
  idle_cost = count(idle, STEPS);
  state = 1;
  print_number("instructions", count(net_step, STEPS) - idle_cost);
  return 0;
}
