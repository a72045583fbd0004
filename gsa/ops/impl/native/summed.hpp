// The summed form: all query poses contribute to every output pose.
//
// softmax_{j,m}(a + p) = softmax_j(LSE_m(a) + p)·softmax_m(a): the poses first, once for all output poses.

#pragma once

#include "worker.hpp"

namespace {

// `inner`: 2^(a − max_m a), with its sum over m as the neighbour's normaliser; `outer`: 2^(LSE + p − max) without
// that sum; `total`: 1/the sum of their products over all neighbours, 0 in lanes that are no queries.
template <class T, Index N>
inline void Worker<T, N>::summed_weights(const Block& block, Index first, Tile tile, const Matrix<T>& total) {
    const Index near = block.neighbours.size();
    const Planes<T> q = vectors(query_block);
    const Matrix<T> by_pose{rest.data() + 2 * P * TILE, M, 1}, top{rest.data() + P * TILE, TILE, 1};
    pose_scores(first, tile, by_pose);
    for (Index i = 0; i < P * TILE; ++i) top.base[i] = all(lowest);
    for (Index n = 0; n < near; ++n) {
        const Neighbour& one = block.neighbours[n];
        const Matrix<T> s = keyed(inner, n), o = posed(outer, n);
        dot<T>(q, tile, planes(key, block.start + one.shift), M, d, s);
        dot<T>(encoding(one), P, q, tile, d, o);
        const V mask = layout.seen(block, one);
        V* z = normalisers(n);
        for (Index a = 0; a < tile; ++a) {
            V most = s(a, 0) + by_pose(a, 0);
            for (Index m = 1; m < M; ++m) most = larger(most, s(a, m) + by_pose(a, m));
            V parts = V{};
            for (Index m = 0; m < M; ++m) {
                const V part = power_of_2(s(a, m) + by_pose(a, m) - most);
                s(a, m) = part;
                parts += part;
            }
            z[a] = parts;
            most += mask;
            for (Index h = 0; h < P; ++h) {
                const V score = o(h, a) + most;
                o(h, a) = score;
                top(h, a) = larger(top(h, a), score);
            }
        }
    }
    for (Index i = 0; i < P * TILE; ++i) total.base[i] = V{};
    for (Index n = 0; n < near; ++n) {
        const Matrix<T> o = posed(outer, n);
        for (Index h = 0; h < P; ++h)
            for (Index a = 0; a < tile; ++a) {
                const V part = power_of_2(o(h, a) - top(h, a));
                o(h, a) = part;
                total(h, a) += part * normalisers(n)[a];
            }
    }
    for (Index h = 0; h < P; ++h)
        for (Index a = 0; a < tile; ++a) total(h, a) = reciprocal(total(h, a), block);
}

template <class T, Index N>
inline void Worker<T, N>::mix_poses(const Block& block, std::size_t n, Tile tile) {
    const Planes<T> values = planes(value, block.start + block.neighbours[n].shift);
    mix<T, OVERWRITE>(keyed(inner, n).transposed(), values, M, mixture(n), tile, d);
}

template <class T, Index N>
inline void Worker<T, N>::forward_summed(const Block& block, Index first, Tile tile) {
    const Matrix<T> normaliser{rest.data(), TILE, 1};
    summed_weights(block, first, tile, normaliser);
    for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
        const Matrix<T> w = posed(outer, n);
        for (Index h = 0; h < P; ++h)
            for (Index a = 0; a < tile; ++a) {
                const V weight = w(h, a) * normaliser(h, a);
                w(h, a) = dropout.on ? (stays(h * Q + first + a, block, n) ? weight : V{}) : weight;
            }
        mix_poses(block, n, tile);
        mix<T>(w.transposed(), mixture(n), tile, vectors(out_sum), P, d);
    }
}

// With `inner` and mixtures unnormalised: `outer` becomes w(h, a)/z(a), of w(h, a) = z(a)·outer(h, a).
template <class T, Index N>
inline void Worker<T, N>::backward_summed(const Block& block, Index first, Tile tile) {
    const Index near = block.neighbours.size();
    const Planes<T> q = vectors(query_block), g = vectors(grad_block), dq = vectors(query_sum);
    const Matrix<T> normaliser{rest.data(), TILE, 1}, mean{rest.data() + P * TILE, TILE, 1};
    summed_weights(block, first, tile, normaliser);
    for (Index i = 0; i < P * TILE; ++i) mean.base[i] = V{};
    for (Index n = 0; n < near; ++n) {
        const Matrix<T> w = posed(outer, n), dw = posed(outer_gradient, n), left = dropout.on ? posed(dropped, n) : w;
        mix_poses(block, n, tile);
        dot<T>(g, P, mixture(n), tile, d, dw);
        for (Index h = 0; h < P; ++h)
            for (Index a = 0; a < tile; ++a) {
                const V weight = w(h, a) * normaliser(h, a);
                V gradient = dw(h, a);
                w(h, a) = weight;
                if (dropout.on) {
                    const auto stay = stays(h * Q + first + a, block, n);
                    left(h, a) = stay ? weight : V{};
                    dw(h, a) = gradient = stay ? gradient : V{};
                }
                mean(h, a) += weight * gradient;
            }
    }
    const Matrix<T> pose_sum{rest.data() + 2 * P * TILE, M, 1};
    const Planes<T> du{reinterpret_cast<T*>(rest.data() + (2 * P + M) * TILE), d * L, L};
    for (Index i = 0; i < TILE * M; ++i) pose_sum.base[i] = V{};
    for (Index n = 0; n < near; ++n) {
        const Neighbour& one = block.neighbours[n];
        const Index place = block.start + one.shift;
        const Matrix<T> s = keyed(inner, n), ds = keyed(inner_gradient, n);
        const Matrix<T> w = posed(outer, n), dp = posed(outer_gradient, n);
        const V* z = normalisers(n);
        V of_sum[TILE] = {};
        for (Index h = 0; h < P; ++h)
            for (Index a = 0; a < tile; ++a) {
                const V gradient = w(h, a) * (dp(h, a) - z[a] * mean(h, a));
                dp(h, a) = gradient;
                of_sum[a] += gradient;
            }
        mix<T>(dp, encoding(one), P, dq, tile, d);
        mix<T>(dp.transposed(), q, tile,
               Planes<T>{reinterpret_cast<T*>(spatial_lanes.data() + one.offset * d), UV * d * L, L}, P, d);
        mix<T, OVERWRITE>(dropout.on ? posed(dropped, n) : w, g, P, du, tile, d);
        mix<T>(s, du, tile, planes(value_gradient, place), M, d);
        dot<T>(du, tile, planes(value, place), M, d, ds);
        for (Index a = 0; a < tile; ++a) {
            V both = of_sum[a];
            for (Index m = 0; m < M; ++m) both -= s(a, m) * ds(a, m);
            both /= z[a];
            for (Index m = 0; m < M; ++m) {
                const V gradient = s(a, m) * (ds(a, m) + both);
                ds(a, m) = gradient;
                pose_sum(a, m) += gradient;
            }
        }
        mix<T>(ds, q, tile, planes(key_gradient, place), M, d);
        mix<T>(ds.transposed(), planes(key, place), M, dq, tile, d);
    }
    pose_gradients(first, tile, pose_sum);
}

}  // namespace
