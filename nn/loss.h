#pragma once
/// Losses: of numbers, of classes and labels, of pairs and triples, of sequences without alignment, of audio. All are
/// differentiable to any order, in compiled functions, too; docs/losses.md lists them.
#include "ferrite/nn/losses/audio.h"
#include "ferrite/nn/losses/classification.h"
#include "ferrite/nn/losses/ranking.h"
#include "ferrite/nn/losses/reduction.h"
#include "ferrite/nn/losses/regression.h"
#include "ferrite/nn/losses/sequence.h"
#include "ferrite/tensor/ops.h"
