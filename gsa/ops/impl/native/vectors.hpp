// Vectors of neighbouring pixels, as wide as the build.

#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>

#if defined(__AVX512DQ__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

namespace {

constexpr double LN_2 = 0.69314718055994530942;

template <class T>
struct Of;

template <>
struct Of<float> {
    typedef float Lanes __attribute__((vector_size(VECTOR_BYTES)));
    typedef std::int32_t Whole __attribute__((vector_size(VECTOR_BYTES)));
    typedef std::uint32_t Hash __attribute__((vector_size(VECTOR_BYTES)));
    static constexpr int count = VECTOR_BYTES / 4;
};

template <>
struct Of<double> {
    typedef double Lanes __attribute__((vector_size(VECTOR_BYTES)));
    typedef std::int64_t Whole __attribute__((vector_size(VECTOR_BYTES)));
    typedef std::uint32_t Hash __attribute__((vector_size(VECTOR_BYTES / 2)));
    static constexpr int count = VECTOR_BYTES / 8;
};

template <class T>
using Lanes = typename Of<T>::Lanes;

template <class T>
inline Lanes<T> load(const T* from) {
    Lanes<T> x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

template <class T>
inline void store(T* to, Lanes<T> x) {
    std::memcpy(to, &x, sizeof x);
}

template <class T>
inline Lanes<T> all(T x) {
    return x - Lanes<T>{};
}

template <class V>
inline V larger(V a, V b) {
    return a < b ? b : a;
}

template <class T>
inline T sum(Lanes<T> x) {
    T total = 0;
    for (int lane = 0; lane < Of<T>::count; ++lane) total += x[lane];
    return total;
}

// 2^x for x ≤ 0, zero where it would be smaller than any normal number; NaN stays NaN.
// 2ⁿ·2^r, in AVX-512 with 0 ≤ r < 1, else with |r| ≤ ½; float: to r⁶, coefficients of the least relative error there;
// double: Taylor's, |r| ≤ ½, to r¹³.
#if defined(__AVX512DQ__)
[[gnu::always_inline]] inline Lanes<float> power_of_2(Lanes<float> x) {
    const Lanes<float> r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF);  // x − ⌊x⌋; 0 for −∞
    Lanes<float> p = all(2.161291636e-4f);
    for (const float c : {1.246784608e-3f, 9.675451602e-3f, 5.548528060e-2f, 2.402293056e-1f, 6.931470444e-1f, 1.0f}) p = p * r + c;
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, all(-126.0f), _CMP_NLT_UQ), p, x);  // p·2^⌊x⌋
}
#else
[[gnu::always_inline]] inline Lanes<float> power_of_2(Lanes<float> x) {
    using V = Lanes<float>;
    const V shifted = x + 12582912.0f;
    const V r = x - (shifted - 12582912.0f);
    V p = all(1.535336196e-4f);
    for (const float c : {1.339887502e-3f, 9.618436918e-3f, 5.550332367e-2f, 2.402264774e-1f, 6.931471825e-1f, 1.0f})
        p = p * r + c;
    typedef Of<float>::Whole I;
    const V result = p * (V)(((I)shifted << 23) + 0x3F800000);
    return x < -126.0f ? V{} : result;
}
#endif

[[gnu::always_inline]] inline Lanes<double> power_of_2(Lanes<double> x) {
    using V = Lanes<double>;
    const V shifted = x + 6755399441055744.0;
    const V r = (x - (shifted - 6755399441055744.0)) * LN_2;
    V p = all(1.0 / 6227020800.0);
    for (const double c : {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0})
        p = p * r + 1.0 / c;
    p = p * (r * r) + (r + 1.0);
    typedef Of<double>::Whole I;
    const V result = p * (V)(((I)shifted << 52) + 0x3FF0000000000000);
    return x < -1022.0 ? V{} : result;
}

}  // namespace
