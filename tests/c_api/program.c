/* A program in C99 that loads a net, runs it as a whole and step by step, and replaces it in a slot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ferrite_c.h"

#define STEPS 100

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, ferrite_error());
  return 1;
}

int main(int argc, char** argv) {
  static float x[STEPS], whole[STEPS], y[STEPS];
  ferrite_model* model;
  ferrite_stream* stream;
  ferrite_slot* slot;
  ferrite_description d;
  ferrite_slot_options options;
  char text[4096];
  size_t values;
  int t;

  if (argc != 2) return 2;
  if (ferrite_load(argv[1], &model) != FERRITE_OK) return failed("load");
  memset(&d, 0, sizeof d);
  d.size = sizeof d;
  if (ferrite_describe(model, &d) != FERRITE_OK) return failed("describe");
  if (d.inputs != 1 || d.outputs != 1 || !d.streams) return failed("an effect of one channel was expected");
  ferrite_summary(model, text, sizeof text);
  printf("ferrite %s on %s\n%s\n%ld parameters, %.0f Hz\n", ferrite_version(), ferrite_instruction_set(), text,
         (long)d.parameters, d.rate);

  for (t = 0; t < STEPS; ++t) x[t] = (float)(t * 7 % 11) / 11 - 0.5f;
  if (ferrite_run(model, 1, STEPS, x, whole, STEPS, &values) != FERRITE_OK || values != STEPS) return failed("run");
  if (ferrite_stream_new(model, 1, &stream) != FERRITE_OK) return failed("stream");
  for (t = 0; t < STEPS / 2; ++t)
    if (ferrite_stream_step(stream, x + t, y + t) != FERRITE_OK) return failed("step");
  if (ferrite_stream_steps(stream, STEPS - t, x + t, y + t) != FERRITE_OK) return failed("steps");
  if (memcmp(whole, y, sizeof y) != 0) return failed("the stream differs from the whole");

  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.crossfade = 10;
  options.rate = d.rate;
  options.flush = 1;
  if (ferrite_slot_new(model, 1, &options, &slot) != FERRITE_OK) return failed("slot");
  if (ferrite_slot_steps(slot, STEPS, x, y) != FERRITE_OK) return failed("slot steps");
  if (memcmp(whole, y, sizeof y) != 0) return failed("the slot differs from the whole");
  if (ferrite_slot_swap(slot, model) != FERRITE_OK || ferrite_slot_settled(slot)) return failed("swap");
  if (ferrite_slot_steps(slot, STEPS, x, y) != FERRITE_OK || !ferrite_slot_settled(slot)) return failed("crossfade");
  if (ferrite_load("no such file", &model) != FERRITE_ERROR_IO) return failed("a missing file was not noticed");
  printf("as expected: %s\n", ferrite_error());

  ferrite_slot_free(slot);
  ferrite_stream_free(stream);
  ferrite_free(model);
  return 0;
}
