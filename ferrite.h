#pragma once
/// Everything a program needs: tensors, gradients, layers, the builder, files and training.
#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/gru.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/threads.h"
