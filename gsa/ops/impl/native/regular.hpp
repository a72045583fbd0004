// The regular form: output pose a is asked by query pose a alone.

#pragma once

#include "worker.hpp"

namespace {

// Unnormalised weights 2^(s − max) of every neighbour to `inner`; returns the normalisers of the tile.
template <class T, Index N>
inline void Worker<T, N>::regular_weights(const Block& block, Index first, Tile tile, V* normaliser) {
    const Planes<T> q = vectors(query_block);
    const Matrix<T> by_pose{rest.data() + 4 * TILE, M, 1};
    pose_scores(first, tile, by_pose);
    V top[TILE], total[TILE] = {};
    for (Index a = 0; a < tile; ++a) top[a] = all(lowest);
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Neighbour& near = block.neighbours[n];
        const Matrix<T> s = keyed(inner, n);
        dot<T>(q, tile, planes(key, block.start + near.shift), M, d, s);
        V by_place[TILE];
        spatial_scores(q, near, first, tile, by_place);
        const V mask = seen(block, near);
        for (Index a = 0; a < tile; ++a) {
            by_place[a] += mask;
            for (Index m = 0; m < M; ++m) {
                s(a, m) += by_place[a] + by_pose(a, m);
                top[a] = larger(top[a], s(a, m));
            }
        }
    }
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Matrix<T> s = keyed(inner, n);
        for (Index a = 0; a < tile; ++a)
            for (Index m = 0; m < M; ++m) {
                s(a, m) = power_of_2(s(a, m) - top[a]);
                total[a] += s(a, m);
            }
    }
    for (Index a = 0; a < tile; ++a) normaliser[a] = reciprocal(total[a], block);
}

// q(a)·spatial(a, offset): output pose a is asked by query pose a alone.
template <class T, Index N>
inline void Worker<T, N>::spatial_scores(const Planes<T>& q, const Neighbour& near, Index first, Tile tile, V* to) const {
    const Numbers<T> e = encoding(near).from(first);
    for (Index a = 0; a < tile; ++a) to[a] = V{};
    for (Index c = 0; c < d; ++c)
        for (Index a = 0; a < tile; ++a) to[a] += q(a, c) * e(a, c);
}

template <class T, Index N>
inline void Worker<T, N>::forward_regular(const Block& block, Index first, Tile tile) {
    V normaliser[TILE];
    regular_weights(block, first, tile, normaliser);
    const Planes<T> out = vectors(out_sum).from(first);
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Neighbour& near = block.neighbours[n];
        const Matrix<T> w = keyed(inner, n);
        if (dropout.on)
            for (Index a = 0; a < tile; ++a)
                for (Index m = 0; m < M; ++m) w(a, m) *= kept((first + a) * M + m, block, n);
        mix<T>(w.transposed(), planes(value, block.start + near.shift), M, out, tile, d);
    }
    for (Index a = 0; a < tile; ++a)
        for (Index c = 0; c < d; ++c) out.put(a, c, out(a, c) * normaliser[a]);
}

template <class T, Index N>
inline void Worker<T, N>::backward_regular(const Block& block, Index first, Tile tile) {
    const Planes<T> q = vectors(query_block), g = vectors(grad_block).from(first), dq = vectors(query_sum);
    V normaliser[TILE], mean[TILE] = {};
    regular_weights(block, first, tile, normaliser);
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Neighbour& near = block.neighbours[n];
        const Matrix<T> w = keyed(inner, n), dw = keyed(inner_gradient, n);
        dot<T>(g, tile, planes(value, block.start + near.shift), M, d, dw);
        for (Index a = 0; a < tile; ++a)
            for (Index m = 0; m < M; ++m) {
                w(a, m) *= normaliser[a];
                if (dropout.on) {
                    const V k = kept((first + a) * M + m, block, n);
                    keyed(dropped, n)(a, m) = w(a, m) * k;
                    dw(a, m) *= k;
                }
                mean[a] += w(a, m) * dw(a, m);
            }
    }
    const Matrix<T> pose_sum{rest.data() + 4 * TILE, M, 1};
    for (Index i = 0; i < TILE * M; ++i) pose_sum.base[i] = V{};
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Neighbour& near = block.neighbours[n];
        const Matrix<T> w = keyed(inner, n), ds = keyed(inner_gradient, n);
        V of_place[TILE] = {};
        for (Index a = 0; a < tile; ++a)
            for (Index m = 0; m < M; ++m) {
                ds(a, m) = w(a, m) * (ds(a, m) - mean[a]);
                of_place[a] += ds(a, m);
                pose_sum(a, m) += ds(a, m);
            }
        const Index place = block.start + near.shift;
        mix<T>(dropout.on ? keyed(dropped, n) : w, g, tile, planes(value_gradient, place), M, d);
        mix<T>(ds, q, tile, planes(key_gradient, place), M, d);
        mix<T>(ds.transposed(), planes(key, place), M, dq, tile, d);
        const Numbers<T> e = encoding(near).from(first);
        V* de = spatial_lanes.data() + (first * UV + near.offset) * d;
        for (Index a = 0; a < tile; ++a)
            for (Index c = 0; c < d; ++c) {
                dq.put(a, c, dq(a, c) + of_place[a] * e(a, c));
                de[a * UV * d + c] += of_place[a] * q(a, c);
            }
    }
    pose_gradients(first, tile, pose_sum);
}

}  // namespace
