// The mask of attention dropout.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "call.hpp"
#include "vectors.hpp"

namespace {

// The first and the last step of fmix32, linear over bits: folded(a ^ b) = folded(a) ^ folded(b).
template <class H>
inline H folded(H x) {
    return x ^ (x >> 16);
}

// MurmurHash3's finaliser (Appleby).
template <class H>
inline H fmix32_of_folded(H x) {
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    return folded(x);
}

template <class H>
inline H fmix32(H x) {
    return fmix32_of_folded(folded(x));
}

// The mask of gsa/ops/_dropout.py: 0 where the low 31 bits of fmix32(element ^ slice) are below p·2³¹, else 1/(1 − p),
// the factor `kept`, which Worker applies to the result and to its gradient.
template <class T>
struct Dropout {
    std::uint32_t seed, pixels, offsets, limit, slice = 0;
    T kept;
    bool on;

    explicit Dropout(const Call& call)
        : seed(static_cast<std::uint32_t>(call.seed)),
          pixels(static_cast<std::uint32_t>(call.height * call.width)),
          offsets(static_cast<std::uint32_t>(call.rows * call.columns)),
          limit(static_cast<std::uint32_t>(std::nearbyint(call.dropout * 2147483648.0))),
          kept(static_cast<T>(1 / (1 - call.dropout))),
          on(call.dropout > 0) {}

    void enter(Index number) { slice = folded(fmix32(seed ^ fmix32(static_cast<std::uint32_t>(number + 1)))); }

    using Hash = typename Of<T>::Hash;

    // fmix32 of the place of a weight, folded: the same in all slices.
    [[gnu::always_inline]] Hash element(Index pair, const std::uint32_t* pixel, Index offset) const {
        const Hash place = load_hash(pixel);
        return folded(fmix32((place + static_cast<std::uint32_t>(pair) * pixels) * offsets + static_cast<std::uint32_t>(offset)));
    }

    // −1 in the lanes of the weights that stay.
    [[gnu::always_inline]] typename Of<T>::Whole stays(Hash element) const {
        return __builtin_convertvector((fmix32_of_folded(element ^ slice) & 0x7FFFFFFFu) >= limit, typename Of<T>::Whole);
    }

    static Hash load_hash(const std::uint32_t* from) {
        Hash x;
        std::memcpy(&x, from, sizeof x);
        return x;
    }
};

}  // namespace
