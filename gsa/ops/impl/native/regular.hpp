// The regular form: output pose a is asked by query pose a alone.

#pragma once

#include "worker.hpp"

namespace {

// Scores of every neighbour to `inner`; `top`: the largest of each query pose of the tile.
template <class T, Index N>
inline void Worker<T, N>::regular_scores(const Block& block, Index first, Tile tile, V* top) {
    const Index near = block.neighbours.size();
    const Planes<T> q = vectors(query_block);
    const Matrix<T> by_pose{rest.data(), M, 1}, by_place = placed();
    pose_scores(first, tile, by_pose);
    V largest[TILE];  // in registers
    for (Index a = 0; a < tile; ++a) {
        dot<T>(encodings(block, first + a), near, q.from(a), 1, d, by_place.from(0, a));
        largest[a] = all(lowest);
    }
    for (Index n = 0; n < near; ++n) {
        const Neighbour& one = block.neighbours[n];
        const Matrix<T> s = keyed(inner, n);
        const V mask = layout.seen(block, one);
        dot<T>(q, tile, planes(key, block.start + one.shift), M, d, s);
        for (Index a = 0; a < tile; ++a) {
            const V place = by_place(n, a) + mask;
            for (Index m = 0; m < M; ++m) {
                const V score = s(a, m) + (place + by_pose(a, m));
                s(a, m) = score;
                largest[a] = larger(largest[a], score);
            }
        }
    }
    for (Index a = 0; a < tile; ++a) top[a] = largest[a];
}

template <class T, Index N>
inline void Worker<T, N>::forward_regular(const Block& block, Index first, Tile tile) {
    V top[TILE], total[TILE] = {};
    regular_scores(block, first, tile, top);
    const Planes<T> out = vectors(out_sum).from(first);
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Matrix<T> w = keyed(inner, n);
        for (Index a = 0; a < tile; ++a)
            for (Index m = 0; m < M; ++m) total[a] += w(a, m) = power_of_2(w(a, m) - top[a]);
        if (dropout.on)
            for (Index a = 0; a < tile; ++a)
                for (Index m = 0; m < M; ++m) w(a, m) = stays((first + a) * M + m, block, n) ? w(a, m) : V{};
        mix<T>(w.transposed(), planes(value, block.start + block.neighbours[n].shift), M, out, tile, d);
    }
    for (Index a = 0; a < tile; ++a) scale_by(reciprocal(total[a], block), out.from(a));
}

// With unnormalised weights: their normalisers are factors of q, g and dq.
template <class T, Index N>
inline void Worker<T, N>::backward_regular(const Block& block, Index first, Tile tile) {
    const Index near = block.neighbours.size();
    const Planes<T> q = vectors(query_block), g = vectors(grad_block).from(first), dq = vectors(query_sum);
    V top[TILE], total[TILE] = {}, mean[TILE] = {}, normaliser[TILE];
    regular_scores(block, first, tile, top);
    for (Index n = 0; n < near; ++n) {
        const Matrix<T> w = keyed(inner, n), dw = keyed(inner_gradient, n), left = dropout.on ? keyed(dropped, n) : w;
        dot<T>(g, tile, planes(value, block.start + block.neighbours[n].shift), M, d, dw);
        for (Index a = 0; a < tile; ++a)
            for (Index m = 0; m < M; ++m) total[a] += w(a, m) = power_of_2(w(a, m) - top[a]);
        for (Index a = 0; a < tile; ++a)
            for (Index m = 0; m < M; ++m) {
                if (dropout.on) {
                    const auto stay = stays((first + a) * M + m, block, n);
                    left(a, m) = stay ? w(a, m) : V{};
                    dw(a, m) = stay ? dw(a, m) : V{};
                }
                mean[a] += w(a, m) * dw(a, m);
            }
    }
    for (Index a = 0; a < tile; ++a) {
        normaliser[a] = reciprocal(total[a], block);
        mean[a] *= normaliser[a];
        scale_by(normaliser[a], q.from(a));
        scale_by(normaliser[a], g.from(a));
    }
    const Matrix<T> pose_sum{rest.data(), M, 1}, place_sum = placed();
    for (Index i = 0; i < TILE * M; ++i) pose_sum.base[i] = V{};
    for (Index n = 0; n < near; ++n) {
        const Matrix<T> w = keyed(inner, n), ds = keyed(inner_gradient, n);
        for (Index a = 0; a < tile; ++a) {
            V of_place = V{};
            for (Index m = 0; m < M; ++m) {
                const V one = w(a, m) * (ds(a, m) - mean[a]);
                ds(a, m) = one;
                of_place += one;
                pose_sum(a, m) += one;
            }
            place_sum(n, a) = of_place;
        }
        const Index place = block.start + block.neighbours[n].shift;
        mix<T>(dropout.on ? keyed(dropped, n) : w, g, tile, planes(value_gradient, place), M, d);
        mix<T>(ds, q, tile, planes(key_gradient, place), M, d);
        mix<T>(ds.transposed(), planes(key, place), M, dq, tile, d);
    }
    for (Index a = 0; a < tile; ++a) {
        mix<T>(place_sum.from(0, a), encodings(block, first + a), near, dq.from(a), 1, d);
        mix<T>(place_sum.from(0, a).transposed(), q.from(a), 1, encoding_gradients(block, first + a), near, d);
    }
    pose_gradients(first, tile, pose_sum);
    for (Index a = 0; a < tile; ++a) scale_by(normaliser[a], dq.from(a));
}

}  // namespace
