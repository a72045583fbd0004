// The summed form: all query poses contribute to every output pose.
//
// softmax_{j,m}(a + p) = softmax_j(LSE_m(a) + p)·softmax_m(a): the poses first, once for all output poses.

#pragma once

#include "worker.hpp"

namespace {

// `inner`: 2^(a − max_m a), with its sum over m as the neighbour's normaliser; `outer`: 2^(LSE + p − max) without
// that sum; `total`: the sum of their products over all neighbours.
template <class T, Index N>
inline void Worker<T, N>::summed_weights(const Block& block, Index first, Tile tile, const Matrix<T>& total) {
    const Planes<T> q = vectors(query_block);
    const Matrix<T> by_pose{rest.data() + 2 * P * TILE, M, 1}, top{rest.data() + P * TILE, TILE, 1};
    pose_scores(first, tile, by_pose);
    for (Index i = 0; i < P * TILE; ++i) top.base[i] = all(lowest);
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Neighbour& near = block.neighbours[n];
        const Matrix<T> s = keyed(inner, n), o = posed(outer, n);
        dot<T>(q, tile, planes(key, block.start + near.shift), M, d, s);
        dot<T>(encoding(near), P, q, tile, d, o);
        const V mask = seen(block, near);
        V* z = normalisers(n);
        for (Index a = 0; a < tile; ++a) {
            V most = s(a, 0) += by_pose(a, 0);
            for (Index m = 1; m < M; ++m) most = larger(most, s(a, m) += by_pose(a, m));
            V parts = V{};
            for (Index m = 0; m < M; ++m) parts += s(a, m) = power_of_2(s(a, m) - most);
            z[a] = parts;
            most += mask;
            for (Index h = 0; h < P; ++h) top(h, a) = larger(top(h, a), o(h, a) += most);
        }
    }
    for (Index h = 0; h < P; ++h)
        for (Index a = 0; a < tile; ++a) {
            V parts = V{};
            for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
                V& o = posed(outer, n)(h, a);
                o = power_of_2(o - top(h, a));
                parts += o * normalisers(n)[a];
            }
            total(h, a) = reciprocal(parts, block);
        }
}

template <class T, Index N>
inline void Worker<T, N>::mix_poses(const Block& block, std::size_t n, Tile tile) {
    const Planes<T> u = mixture(n);
    for (Index i = 0; i < TILE * d; ++i) store(u.base + i * L, V{});
    mix<T>(keyed(inner, n).transposed(), planes(value, block.start + block.neighbours[n].shift), M, u, tile, d);
}

template <class T, Index N>
inline void Worker<T, N>::forward_summed(const Block& block, Index first, Tile tile) {
    const Matrix<T> normaliser{rest.data(), TILE, 1};
    summed_weights(block, first, tile, normaliser);
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Matrix<T> w = posed(outer, n);
        for (Index h = 0; h < P; ++h)
            for (Index a = 0; a < tile; ++a) {
                w(h, a) *= normaliser(h, a);
                if (dropout.on) w(h, a) = stays(h * Q + first + a, block, n) ? w(h, a) : V{};
            }
        mix_poses(block, n, tile);
        mix<T>(w.transposed(), mixture(n), tile, vectors(out_sum), P, d);
    }
}

template <class T, Index N>
inline void Worker<T, N>::backward_summed(const Block& block, Index first, Tile tile) {
    const Planes<T> q = vectors(query_block), g = vectors(grad_block), dq = vectors(query_sum);
    const Matrix<T> normaliser{rest.data(), TILE, 1}, mean{rest.data() + P * TILE, TILE, 1};
    summed_weights(block, first, tile, normaliser);
    for (Index i = 0; i < P * TILE; ++i) mean.base[i] = V{};
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Matrix<T> s = keyed(inner, n), w = posed(outer, n), dw = posed(outer_gradient, n);
        const V* z = normalisers(n);
        for (Index a = 0; a < tile; ++a) {
            const V share = 1 / z[a];
            for (Index m = 0; m < M; ++m) s(a, m) *= share;
        }
        mix_poses(block, n, tile);
        dot<T>(g, P, mixture(n), tile, d, dw);
        for (Index h = 0; h < P; ++h)
            for (Index a = 0; a < tile; ++a) {
                w(h, a) *= z[a] * normaliser(h, a);
                if (dropout.on) {
                    const auto stay = stays(h * Q + first + a, block, n);
                    posed(dropped, n)(h, a) = stay ? w(h, a) : V{};
                    dw(h, a) = stay ? dw(h, a) : V{};
                }
                mean(h, a) += w(h, a) * dw(h, a);
            }
    }
    const Matrix<T> pose_sum{rest.data() + 2 * P * TILE, M, 1};
    const Planes<T> du{reinterpret_cast<T*>(rest.data() + (2 * P + M) * TILE), d * L, L};
    for (Index i = 0; i < TILE * M; ++i) pose_sum.base[i] = V{};
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Neighbour& near = block.neighbours[n];
        const Index place = block.start + near.shift;
        const Matrix<T> s = keyed(inner, n), ds = keyed(inner_gradient, n);
        const Matrix<T> w = posed(outer, n), dp = posed(outer_gradient, n);
        V of_sum[TILE] = {};
        for (Index h = 0; h < P; ++h)
            for (Index a = 0; a < tile; ++a) {
                dp(h, a) = w(h, a) * (dp(h, a) - mean(h, a));
                of_sum[a] += dp(h, a);
            }
        mix<T>(dp, encoding(near), P, dq, tile, d);
        mix<T>(dp.transposed(), q, tile,
               Planes<T>{reinterpret_cast<T*>(spatial_lanes.data() + near.offset * d), UV * d * L, L}, P, d);
        for (Index i = 0; i < TILE * d; ++i) store(du.base + i * L, V{});
        mix<T>(dropout.on ? posed(dropped, n) : w, g, P, du, tile, d);
        mix<T>(s, du, tile, planes(value_gradient, place), M, d);
        dot<T>(du, tile, planes(value, place), M, d, ds);
        for (Index a = 0; a < tile; ++a) {
            V average = V{};
            for (Index m = 0; m < M; ++m) average += s(a, m) * ds(a, m);
            for (Index m = 0; m < M; ++m)
                pose_sum(a, m) += ds(a, m) = s(a, m) * (of_sum[a] + ds(a, m) - average);
        }
        mix<T>(ds, q, tile, planes(key_gradient, place), M, d);
        mix<T>(ds.transposed(), planes(key, place), M, dq, tile, d);
    }
    pose_gradients(first, tile, pose_sum);
}

}  // namespace
