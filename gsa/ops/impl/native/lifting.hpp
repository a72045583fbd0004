// One pose that asks one: lifting, and attention without poses. A softmax over the neighbours for each output pose.
//
// The neighbours stand where the other forms have key poses, so that products take four of them together. The encoding
// of the only pair of poses is the same for all that is seen: the softmax forgets it.

#pragma once

#include "worker.hpp"

namespace {

// Unnormalised weights 2^(s − max) of every (output pose, neighbour), and the normalisers; `of_key` is overwritten.
template <class T, Index N>
inline void Worker<T, N>::lifting_weights(const Block& block, const Matrix<T>& w, const Matrix<T>& of_key, V* normaliser) {
    const Index near = block.neighbours.size();
    const Planes<T> q = vectors(query_block);
    V* top = rest.data() + P;
    for (Index h = 0; h < P; ++h) {
        top[h] = all(lowest);
        normaliser[h] = V{};
    }
    dot<T>(q, 1, around(key, block), near, d, of_key);
    for (Index n = 0; n < near; ++n) {
        dot<T>(encoding(block.neighbours[n]), P, q, 1, d, w.from(0, n));
        const V score = of_key(0, n) + layout.seen(block, block.neighbours[n]);
        for (Index h = 0; h < P; ++h) top[h] = larger(top[h], w(h, n) += score);
    }
    for (Index n = 0; n < near; ++n)
        for (Index h = 0; h < P; ++h) normaliser[h] += w(h, n) = power_of_2(w(h, n) - top[h]);
    for (Index h = 0; h < P; ++h) normaliser[h] = reciprocal(normaliser[h], block);
}

template <class T, Index N>
inline void Worker<T, N>::forward_lifting(const Block& block) {
    const Index near = block.neighbours.size();
    const Matrix<T> w{outer.data(), 1, P};
    const Planes<T> out = vectors(out_sum);
    V* normaliser = rest.data();
    lifting_weights(block, w, {inner.data(), 0, 1}, normaliser);
    if (dropout.on)
        for (Index n = 0; n < near; ++n)
            for (Index h = 0; h < P; ++h) w(h, n) = stays(h, block, n) ? w(h, n) : V{};
    mix<T>(w.transposed(), around(value, block), near, out, P, d);
    for (Index h = 0; h < P; ++h) scale_by(normaliser[h], out.from(h));
}

template <class T, Index N>
inline void Worker<T, N>::backward_lifting(const Block& block) {
    const Index near = block.neighbours.size();
    const Planes<T> q = vectors(query_block), g = vectors(grad_block), dq = vectors(query_sum);
    const Matrix<T> w{outer.data(), 1, P}, ds{outer_gradient.data(), 1, P}, of_key{inner.data(), 0, 1};
    const Matrix<T> left = dropout.on ? Matrix<T>{dropped.data(), 1, P} : w;
    V *normaliser = rest.data(), *mean = rest.data() + P;
    lifting_weights(block, w, of_key, normaliser);
    dot<T>(g, P, around(value, block), near, d, ds);
    for (Index h = 0; h < P; ++h) mean[h] = V{};
    for (Index n = 0; n < near; ++n)
        for (Index h = 0; h < P; ++h) {
            w(h, n) *= normaliser[h];
            if (dropout.on) {
                const auto stay = stays(h, block, n);
                left(h, n) = stay ? w(h, n) : V{};
                ds(h, n) = stay ? ds(h, n) : V{};
            }
            mean[h] += w(h, n) * ds(h, n);
        }
    for (Index n = 0; n < near; ++n) {
        const Neighbour& one = block.neighbours[n];
        const Index place = block.start + one.shift;
        of_key(0, n) = V{};
        for (Index h = 0; h < P; ++h) of_key(0, n) += ds(h, n) = w(h, n) * (ds(h, n) - mean[h]);
        mix<T>(left.from(0, n), g, P, planes(value_gradient, place), 1, d);
        mix<T>(of_key.from(0, n), q, 1, planes(key_gradient, place), 1, d);
        mix<T>(ds.from(0, n), encoding(one), P, dq, 1, d);
        mix<T>(ds.from(0, n).transposed(), q, 1,
               Planes<T>{reinterpret_cast<T*>(spatial_lanes.data() + one.offset * d), UV * d * L, L}, P, d);
    }
    mix<T>(of_key.transposed(), around(key, block), near, dq, 1, d);
}

}  // namespace
