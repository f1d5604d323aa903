/* A C interface to Ferrite: runs nets from files, as a whole or step by step. For programs in C, C#, Python and other
 * languages, and for compilers that do not build the library itself. docs/c-api.md is its page.
 *
 *   ferrite_model* model;
 *   if (ferrite_load("amp.nam", &model) != FERRITE_OK) fail(ferrite_error());
 *   ferrite_stream* stream;
 *   if (ferrite_stream_new(model, 1, &stream) != FERRITE_OK) fail(ferrite_error());
 *   ferrite_stream_steps(stream, 64, in, out);
 *
 * Values are f32, row-major: B is the number of sequences, T of steps, D and N of values that a step takes and gives.
 * Every function that can fail returns a status, and changes nothing when it fails unless its description says
 * otherwise; ferrite_error() tells what was wrong. A null pointer where an object is expected is FERRITE_ERROR_VALUE.
 * Models do not change: several threads may use one at a time. A stream belongs to one thread at a time. Objects may be
 * freed in any order. Steps of streams and slots allocate nothing, take no lock and make no system call, unless they
 * fail. */
#ifndef FERRITE_C_H
#define FERRITE_C_H

#include <stddef.h>
#include <stdint.h>

/* The version of this interface. Functions may be added, structs may grow at their ends: a program that was built
 * with an older header runs with a newer library of the same FERRITE_C_ABI. */
#define FERRITE_C_ABI 1

#ifndef FERRITE_C_API
#if defined(_WIN32)
#define FERRITE_C_API __declspec(dllimport)
#else
#define FERRITE_C_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ferrite_model ferrite_model;   /* a net with its weights */
typedef struct ferrite_stream ferrite_stream; /* a net that runs step by step, with states of its own */
typedef struct ferrite_slot ferrite_slot;     /* a stream that can be replaced while an audio thread plays it */

typedef int32_t ferrite_status;
enum {
  FERRITE_OK = 0,
  FERRITE_ERROR_VALUE = 1,    /* an argument, or an option */
  FERRITE_ERROR_SHAPE = 2,    /* sizes that do not fit each other */
  FERRITE_ERROR_DTYPE = 3,    /* a net that does not compute in f32 */
  FERRITE_ERROR_IO = 4,       /* a file that is missing, damaged or of another kind */
  FERRITE_ERROR_PACE = 5,     /* steps of a net that does not give one for each: use ferrite_stream_feed */
  FERRITE_ERROR_CAPACITY = 6, /* more steps than attention or learned positions have room for */
  FERRITE_ERROR_MEMORY = 7,
  FERRITE_ERROR_OTHER = 8
};

/* Returns the version of the library, "0.2.0". */
FERRITE_C_API const char* ferrite_version(void);
/* Returns the name of the instruction set in use: "avx2", "neon". */
FERRITE_C_API const char* ferrite_instruction_set(void);
/* Returns what was wrong with the last call on this thread that failed, up to 1,023 bytes of UTF-8; "" if none did. */
FERRITE_C_API const char* ferrite_error(void);

/* Loads a file that holds a whole net: one that `ferrite train` or train::save_net has written, a .nam file, or the
 * JSON of RTNeural or GuitarML. The format is recognised by the contents. The path is UTF-8. */
FERRITE_C_API ferrite_status ferrite_load(const char* path, ferrite_model** model);
/* Loads such a file from memory, which is not needed afterwards. */
FERRITE_C_API ferrite_status ferrite_load_bytes(const void* bytes, size_t size, ferrite_model** model);
FERRITE_C_API void ferrite_free(ferrite_model* model);

/* What a net takes and gives. */
typedef struct ferrite_description {
  size_t size;        /* sizeof(ferrite_description), to be set by the caller */
  int64_t inputs;     /* D; 0: any number */
  int64_t outputs;    /* N; 0 if inputs is 0 or the net does not stream */
  int64_t parameters; /* number of weights */
  double rate;        /* steps per second for which the net was trained, in Hz; 0 where the file does not say */
  int32_t streams;    /* 1 if the net runs step by step, otherwise 0 */
  int64_t stride;     /* of streams: input steps from one output to the next */
  int64_t delay;      /* of streams: the input step, counted from 0, that gives the first output */
} ferrite_description;

FERRITE_C_API ferrite_status ferrite_describe(const ferrite_model* model, ferrite_description* description);
/* Writes a table of the layers, with an ending zero and at most `room` bytes, and returns the size of the whole text
 * without the zero; 0 when it fails. */
FERRITE_C_API size_t ferrite_summary(const ferrite_model* model, char* text, size_t room);

/* Runs the net on whole sequences: x [B, T, D] -> y, usually [B, T, N]; a net may give fewer steps, or one row for each
 * sequence. `values` is the number of values in y. If y is null, or `room` is too small, nothing is written but
 * `values`; the second is FERRITE_ERROR_SHAPE. */
FERRITE_C_API ferrite_status ferrite_run(const ferrite_model* model, int64_t batch, int64_t steps, const float* x,
                                         float* y, size_t room, size_t* values);

/* Makes a stream of `batch` sequences, with a copy of the weights. */
FERRITE_C_API ferrite_status ferrite_stream_new(const ferrite_model* model, int64_t batch, ferrite_stream** stream);
/* Makes an independent stream with equal weights and states. */
FERRITE_C_API ferrite_status ferrite_stream_clone(const ferrite_stream* stream, ferrite_stream** copy);
FERRITE_C_API void ferrite_stream_free(ferrite_stream* stream);
/* Runs one step: x [B, D] -> y [B, N]. */
FERRITE_C_API ferrite_status ferrite_stream_step(ferrite_stream* stream, const float* x, float* y);
/* Runs n steps in less time than one by one, with the same bits: x [n, B, D] -> y [n, B, N], which may be the same
 * memory. When a step fails, those before it have been made. */
FERRITE_C_API ferrite_status ferrite_stream_steps(ferrite_stream* stream, int64_t n, const float* x, float* y);
/* Feeds one step to a net with strides or delays: `gave` becomes 1 if there is an output in y, otherwise 0. */
FERRITE_C_API ferrite_status ferrite_stream_feed(ferrite_stream* stream, const float* x, float* y, int32_t* gave);
/* Writes the next output that a net which looks ahead gives after its last input; `gave` as above. */
FERRITE_C_API ferrite_status ferrite_stream_finish(ferrite_stream* stream, float* y, int32_t* gave);
/* Begins a new sequence. */
FERRITE_C_API ferrite_status ferrite_stream_reset(ferrite_stream* stream);

/* How a slot plays; lengths are in steps. */
typedef struct ferrite_slot_options {
  size_t size;       /* sizeof(ferrite_slot_options), to be set by the caller */
  int64_t crossfade; /* steps in which the sound goes over from one net to the next */
  int64_t lead;      /* steps that a new net runs unheard before that */
  double rate;       /* steps per second that the slot is given, in Hz; 0: that of every net */
  int32_t flush;     /* 1: denormal numbers count as zero in ferrite_slot_steps; 0: they are computed with */
} ferrite_slot_options;

/* Makes a slot of `batch` sequences that plays a net. Nets whose rate differs from the slot's run at their own, between
 * two conversions. Without options: a crossfade of 1024, no lead, any rate, flush. */
FERRITE_C_API ferrite_status ferrite_slot_new(const ferrite_model* model, int64_t batch,
                                              const ferrite_slot_options* options, ferrite_slot** slot);
FERRITE_C_API void ferrite_slot_free(ferrite_slot* slot);
/* Runs n steps on the audio thread: x [n, B, D] -> y [n, B, N], which may be the same memory. */
FERRITE_C_API ferrite_status ferrite_slot_steps(ferrite_slot* slot, int64_t n, const float* x, float* y);
/* Begins a new sequence, on the audio thread. */
FERRITE_C_API ferrite_status ferrite_slot_reset(ferrite_slot* slot);
/* Replaces the net, on any thread but the audio thread, and frees those that are no longer heard. */
FERRITE_C_API ferrite_status ferrite_slot_swap(ferrite_slot* slot, const ferrite_model* model);
/* Returns 1 if the net that was put last is all that is heard, otherwise 0. */
FERRITE_C_API int32_t ferrite_slot_settled(const ferrite_slot* slot);
/* Returns by how many steps the output comes late, because the rate of the net is not the slot's. */
FERRITE_C_API int64_t ferrite_slot_latency(const ferrite_slot* slot);

#ifdef __cplusplus
}
#endif

#endif
