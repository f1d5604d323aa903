/* Runs a step of training on a board: main.c, with the loss of each step as the output. Inputs and targets are drawn one
   after the other. run.py --main train.c */
#include "net.h"

#define NET_INPUTS (NET_X + NET_TARGET)
#undef PRINTED
#define PRINTED 100

static int train(net* n, const float* in, float* loss) { return net_train(n, in, in + NET_X, loss); }

static inline int train_steps(net* n, int32_t steps, const float* in, float* loss) {
  int error = 0;
  for (; steps > 0 && !error; --steps, in += NET_INPUTS, loss += NET_OUTPUTS) error = train(n, in, loss);
  return error;
}

#define net_step train
#define net_steps train_steps
#define net_reset net_init
#include "main.c"
