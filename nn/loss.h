#pragma once
/// Losses for numbers, for classes and labels, for pairs and triples, for sequences without alignment, and for audio.
/// All are differentiable to any order, in compiled functions, too; docs/losses.md lists them.
#include "ferrite/nn/losses/audio.h"
#include "ferrite/nn/losses/classification.h"
#include "ferrite/nn/losses/ranking.h"
#include "ferrite/nn/losses/reduction.h"
#include "ferrite/nn/losses/regression.h"
#include "ferrite/nn/losses/sequence.h"
#include "ferrite/tensor/ops.h"
