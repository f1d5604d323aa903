#pragma once
/// What a board gives to main.c: text out, an exit, and a count of executed instructions.
#include <stdint.h>

void board_print(const char* text);
void board_exit(int code);

/* Starts the count again. */
void board_count_start(void);
/* Returns the instructions since the start, rounded down to what the board's clock resolves. */
uint64_t board_count(void);

/* The lowest address of the stack. */
extern uint32_t board_stack_end[];
