// The arguments of a kernel, as _kernels.py fills them in.

#pragma once

#include <cstdint>

namespace {

using Index = std::int64_t;

// [B, heads, poses, H, W, d] of any strides, in elements.
struct Feature {
    void* data;
    Index strides[6];
};

// The arguments of the op; every pointer to the same type, float or double.
struct Call {
    Index batch, heads, queries, keys, outputs, height, width, channels, rows, columns;
    Index regular;
    Index threads;
    Index crop;  // pixels at every border that ask nothing
    Feature query, key, value, out;                   // out: the result, or its gradient in backward, cropped
    Feature query_gradient, key_gradient, value_gradient;
    const void *spatial, *pose;                       // [P, U, V, d] and [Q, M, d], contiguous
    void *spatial_gradient, *pose_gradient;
    const std::uint8_t* window;                       // [U, V]
    double dropout;
    Index seed;
    // GOMP_parallel of the OpenMP library that torch has loaded: run a function on a team of its threads. Null: none.
    void (*team)(void (*function)(void*), void* data, unsigned threads, unsigned flags);
};

}  // namespace
