// Small products of matrices over poses and channels, whose entries are vectors.

#pragma once

#include <type_traits>

#include "call.hpp"
#include "vectors.hpp"

namespace {

// One vector for each (pose, channel): planes of a feature at some place, or scratch.
template <class T>
struct Planes {
    T* base;
    Index pose, channel;
    Lanes<T> operator()(Index p, Index c) const { return load(base + p * pose + c * channel); }
    void put(Index p, Index c, Lanes<T> x) const { store(base + p * pose + c * channel, x); }
    Planes from(Index p) const { return {base + p * pose, pose, channel}; }
};

// The same number in all lanes: encodings.
template <class T>
struct Numbers {
    const T* base;
    Index pose, channel;
    Lanes<T> operator()(Index p, Index c) const { return all(base[p * pose + c * channel]); }
    Numbers from(Index p) const { return {base + p * pose, pose, channel}; }
};

// A matrix of vectors, entry (a, b) at a·row + b·column.
template <class T>
struct Matrix {
    Lanes<T>* base;
    Index row, column;
    Lanes<T>& operator()(Index a, Index b) const { return base[a * row + b * column]; }
    Matrix transposed() const { return {base, column, row}; }
    Matrix from(Index a, Index b) const { return {base + a * row + b * column, row, column}; }
};

template <int N>
using Size = std::integral_constant<int, N>;

// Loops whose length is known are written out, so that what they sum stays in registers.
#define UNROLLED _Pragma("GCC unroll 4")

// f(size, first) for pieces of 4, 2 and 1 that make up n.
template <class F>
[[gnu::always_inline]] inline void pieces(Index n, F&& f) {
    Index first = 0;
    for (; first + 4 <= n; first += 4) f(Size<4>{}, first);
    if (n - first >= 2) f(Size<2>{}, first), first += 2;
    if (n - first >= 1) f(Size<1>{}, first);
}

// s(a, b) = Σ_c x(a, c)·y(b, c)
template <class T, class X, class Y>
[[gnu::always_inline]] inline void dot(const X& x, Index as, const Y& y, Index bs, Index channels, const Matrix<T>& s) {
    pieces(as, [&](auto na, Index a0) __attribute__((always_inline)) {
        pieces(bs, [&](auto nb, Index b0) __attribute__((always_inline)) {
            constexpr int A = decltype(na)::value, B = decltype(nb)::value;
            const X xs = x.from(a0);
            const Y ys = y.from(b0);
            Lanes<T> total[A][B] = {};
            for (Index c = 0; c < channels; ++c) {
                Lanes<T> left[A];
                UNROLLED for (int a = 0; a < A; ++a) left[a] = xs(a, c);
                UNROLLED for (int b = 0; b < B; ++b) {
                    const Lanes<T> right = ys(b, c);
                    UNROLLED for (int a = 0; a < A; ++a) total[a][b] += left[a] * right;
                }
            }
            UNROLLED for (int a = 0; a < A; ++a)
                UNROLLED for (int b = 0; b < B; ++b) s(a0 + a, b0 + b) = total[a][b];
        });
    });
}

enum Start { ADD, OVERWRITE };

// y(b, c) += Σ_a w(a, b)·x(a, c), or = if what is there is overwritten.
template <class T, Start start = ADD, class X, class Y>
[[gnu::always_inline]] inline void mix(const Matrix<T>& w, const X& x, Index as, const Y& y, Index bs, Index channels) {
    pieces(as, [&](auto na, Index a0) __attribute__((always_inline)) {
        pieces(bs, [&](auto nb, Index b0) __attribute__((always_inline)) {
            constexpr int A = decltype(na)::value, B = decltype(nb)::value;
            const X xs = x.from(a0);
            const Y ys = y.from(b0);
            Lanes<T> ws[A][B];
            UNROLLED for (int a = 0; a < A; ++a)
                UNROLLED for (int b = 0; b < B; ++b) ws[a][b] = w(a0 + a, b0 + b);
            for (Index c = 0; c < channels; ++c) {
                Lanes<T> left[A];
                UNROLLED for (int a = 0; a < A; ++a) left[a] = xs(a, c);
                UNROLLED for (int b = 0; b < B; ++b) {
                    Lanes<T> total = start == OVERWRITE && a0 == 0 ? Lanes<T>{} : ys(b, c);
                    UNROLLED for (int a = 0; a < A; ++a) total += ws[a][b] * left[a];
                    ys.put(b, c, total);
                }
            }
        });
    });
}

}  // namespace
