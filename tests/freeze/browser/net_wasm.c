/* What a program in another language has to know of a net and cannot read from its header. */
#include "net.h"

int32_t net_inputs(void);
int32_t net_outputs(void);
int32_t net_saved_bytes(void);
int32_t net_bytes(void);

int32_t net_inputs(void) { return NET_INPUTS; }
int32_t net_outputs(void) { return NET_OUTPUTS; }
int32_t net_saved_bytes(void) { return NET_SAVED_BYTES; }
int32_t net_bytes(void) { return (int32_t)sizeof(net); }
