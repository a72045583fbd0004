// The CPU kernels of group self-attention.
//
// A slice is one head of one sample. Its queries, keys and values are laid out as planes, one for each pose and
// channel, with a border that is never visible; all arithmetic is on vectors of neighbouring pixels of a plane. A block
// is one such vector of queries. For every relative position the keys of a block are the same planes, shifted, so
// that scores and sums are small products of matrices over poses and channels, four by four poses at a time.
// Nothing larger than one block's scores is kept, and backward computes them again.
//
// Slices are independent: each has one owner, writes its own part of the gradients of the encodings, and these parts
// are added in order, so that no result depends on the number of threads.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

namespace {

using Index = std::int64_t;

// ------------------------------------------------------------------------------------------------ the call

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
    Feature query, key, value, out;                   // out: the result, or its gradient in backward
    Feature query_gradient, key_gradient, value_gradient;
    const void *spatial, *pose;                       // [P, U, V, d] and [Q, M, d], contiguous
    void *spatial_gradient, *pose_gradient;
    const std::uint8_t* window;                       // [U, V]
    double dropout;
    Index seed;
    // GOMP_parallel of the OpenMP library that torch has loaded: run a function on a team of its threads. Null: none.
    void (*team)(void (*function)(void*), void* data, unsigned threads, unsigned flags);
};

// ------------------------------------------------------------------------------------------------ vectors

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

// exp(x) for x ≤ 0, zero where it would be smaller than any normal number; NaN stays NaN.
// 2ⁿ·exp(r) with |r| ≤ ln 2 / 2; float: the polynomial of Cephes' expf (Moshier); double: Taylor's, to r¹³.
[[gnu::always_inline]] inline Lanes<float> exponential(Lanes<float> x) {
    using V = Lanes<float>;
    const V least = all(-87.0f);
    const V y = x < least ? least : x;
    const V shifted = y * 1.44269504f + 12582912.0f;
    const V n = shifted - 12582912.0f;
    const V r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    V p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + (r + 1.0f);
    typedef Of<float>::Whole I;
    const I power = ((I)shifted << 23) + 0x3F800000;
    const V result = p * (V)power;
    return x < least ? V{} : result;
}

[[gnu::always_inline]] inline Lanes<double> exponential(Lanes<double> x) {
    using V = Lanes<double>;
    const V least = all(-708.0);
    const V y = x < least ? least : x;
    const V shifted = y * 1.4426950408889634 + 6755399441055744.0;
    const V n = shifted - 6755399441055744.0;
    const V r = (y - n * 6.93147180369123816490e-1) - n * 1.90821492927058770002e-10;
    V p = all(1.0 / 6227020800.0);
    for (const double c : {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0})
        p = p * r + 1.0 / c;
    p = p * (r * r) + (r + 1.0);
    typedef Of<double>::Whole I;
    const I power = ((I)shifted << 52) + 0x3FF0000000000000;
    const V result = p * (V)power;
    return x < least ? V{} : result;
}

// ------------------------------------------------------------------------------------------------ small products

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

// f(size, first) for pieces of 4, 2 and 1 that make up n.
template <class F>
inline void pieces(Index n, F&& f) {
    Index first = 0;
    for (; first + 4 <= n; first += 4) f(Size<4>{}, first);
    if (n - first >= 2) f(Size<2>{}, first), first += 2;
    if (n - first >= 1) f(Size<1>{}, first);
}

// s(a, b) = Σ_c x(a, c)·y(b, c)
template <class T, class X, class Y>
inline void dot(const X& x, Index as, const Y& y, Index bs, Index channels, const Matrix<T>& s) {
    pieces(as, [&](auto na, Index a0) {
        pieces(bs, [&](auto nb, Index b0) {
            constexpr int A = decltype(na)::value, B = decltype(nb)::value;
            const X xs = x.from(a0);
            const Y ys = y.from(b0);
            Lanes<T> total[A][B] = {};
            for (Index c = 0; c < channels; ++c) {
                Lanes<T> left[A];
                for (int a = 0; a < A; ++a) left[a] = xs(a, c);
                for (int b = 0; b < B; ++b) {
                    const Lanes<T> right = ys(b, c);
                    for (int a = 0; a < A; ++a) total[a][b] += left[a] * right;
                }
            }
            for (int a = 0; a < A; ++a)
                for (int b = 0; b < B; ++b) s(a0 + a, b0 + b) = total[a][b];
        });
    });
}

// y(b, c) += Σ_a w(a, b)·x(a, c)
template <class T, class X>
inline void mix(const Matrix<T>& w, const X& x, Index as, const Planes<T>& y, Index bs, Index channels) {
    pieces(as, [&](auto na, Index a0) {
        pieces(bs, [&](auto nb, Index b0) {
            constexpr int A = decltype(na)::value, B = decltype(nb)::value;
            const X xs = x.from(a0);
            const Planes<T> ys = y.from(b0);
            Lanes<T> ws[A][B];
            for (int a = 0; a < A; ++a)
                for (int b = 0; b < B; ++b) ws[a][b] = w(a0 + a, b0 + b);
            for (Index c = 0; c < channels; ++c) {
                Lanes<T> left[A];
                for (int a = 0; a < A; ++a) left[a] = xs(a, c);
                for (int b = 0; b < B; ++b) {
                    Lanes<T> total = ys(b, c);
                    for (int a = 0; a < A; ++a) total += ws[a][b] * left[a];
                    ys.put(b, c, total);
                }
            }
        });
    });
}

// ------------------------------------------------------------------------------------------------ blocks of queries

struct Neighbour {
    Index offset;  // u·V + v
    Index shift;   // from a query to this key, in its plane
};

// As many neighbouring queries as a vector has lanes; the last lanes may be no queries.
struct Block {
    Index start;                         // place of the first in its plane
    std::vector<Neighbour> neighbours;   // the relative positions at which any of them sees a key
};

// What is the same for all slices: places, blocks, what is visible.
template <class T>
struct Layout {
    static constexpr int L = Of<T>::count;
    Index stride, top, plane;
    std::vector<Block> blocks;
    std::vector<T> visible;                    // plane of 0, and −∞ outside the picture
    std::vector<T> query_here;                 // plane of 1 where a query is, else 0
    std::vector<std::uint32_t> pixel;          // plane of y·W + x
    Index most_neighbours = 0;

    Index place(Index y, Index x) const { return (y + top) * stride + (stride - width_) + x; }

    explicit Layout(const Call& call) : width_(call.width) {
        const Index half_u = call.rows / 2, half_v = call.columns / 2;
        stride = call.width + half_v;  // the border between two rows serves both
        top = half_u;
        plane = (call.height + 2 * half_u) * stride + half_v + L;
        visible.assign(plane, -std::numeric_limits<T>::infinity());
        query_here.assign(plane, T(0));
        pixel.assign(plane, 0);
        for (Index y = 0; y < call.height; ++y)
            for (Index x = 0; x < call.width; ++x) {
                visible[place(y, x)] = T(0);
                query_here[place(y, x)] = T(1);
                pixel[place(y, x)] = static_cast<std::uint32_t>(y * call.width + x);
            }
        Index next = 0;
        for (Index y = 0; y < call.height; ++y)
            for (Index x = 0; x < call.width; ++x)
                if (place(y, x) >= next) {
                    blocks.push_back({place(y, x), {}});
                    next = place(y, x) + L;
                }
        for (Block& block : blocks) {
            for (Index u = 0; u < call.rows; ++u)
                for (Index v = 0; v < call.columns; ++v) {
                    if (!call.window[u * call.columns + v]) continue;
                    const Index shift = (u - half_u) * stride + v - half_v;
                    bool seen = false;
                    for (int lane = 0; lane < L; ++lane)
                        seen |= query_here[block.start + lane] != 0 && query_here[block.start + lane + shift] != 0;
                    if (seen) block.neighbours.push_back({u * call.columns + v, shift});
                }
            most_neighbours = std::max<Index>(most_neighbours, block.neighbours.size());
        }
    }

   private:
    Index width_;
};

// ------------------------------------------------------------------------------------------------ dropout

template <class H>
inline H fmix32(H x) {  // MurmurHash3, Appleby
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    return x ^ (x >> 16);
}

// The mask of gsa/ops/_dropout.py: 0 where the low 31 bits of fmix32(element ^ slice) are below p·2³¹, else 1/(1 − p).
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

    void enter(Index number) { slice = fmix32(seed ^ fmix32(static_cast<std::uint32_t>(number + 1))); }

    [[gnu::always_inline]] Lanes<T> operator()(Index pair, const std::uint32_t* pixel, Index offset) const {
        typename Of<T>::Hash place;
        std::memcpy(&place, pixel, sizeof place);
        place = (place + static_cast<std::uint32_t>(pair) * pixels) * offsets + static_cast<std::uint32_t>(offset);
        const auto low = (fmix32(fmix32(place) ^ slice) & 0x7FFFFFFFu) < limit;
        return __builtin_convertvector(low, typename Of<T>::Whole) ? Lanes<T>{} : all(kept);
    }
};

// ------------------------------------------------------------------------------------------------ one worker

// Memory aligned for vectors, zero at first.
template <class T>
class Buffer {
   public:
    explicit Buffer(Index count) : bytes_(((count * sizeof(T) + 63) / 64 + 1) * 64) {
        data_ = static_cast<T*>(std::aligned_alloc(64, bytes_));
        if (!data_) throw std::bad_alloc();
        clear();
    }
    Buffer(const Buffer&) = delete;
    ~Buffer() { std::free(data_); }
    void clear() { std::memset(static_cast<void*>(data_), 0, bytes_); }
    T* data() const { return data_; }

   private:
    std::size_t bytes_;
    T* data_;
};

constexpr Index TILE = 4;  // query poses at a time

// A number that the compiler knows, or (N = 0) one that it does not.
template <Index N>
struct Count {
    explicit Count(Index) {}
    constexpr operator Index() const { return N; }
};

template <>
struct Count<0> {
    const Index n;
    explicit Count(Index n) : n(n) {}
    operator Index() const { return n; }
};

// Serves one slice after another with memory of its own. N: query, key and output poses where they are equal and the
// kernels have been compiled for their number, else 0.
template <class T, Index N>
class Worker {
    using V = Lanes<T>;
    using Tile = Count<std::min(N, TILE)>;
    static constexpr int L = Of<T>::count;

    const Call& call;
    const Layout<T>& layout;
    const Count<N> Q, M, P;
    const Index d, UV;
    const T scale;
    const Numbers<T> spatial, pose;
    Dropout<T> dropout;
    Buffer<T> query, key, value, grad, key_gradient, value_gradient, result;
    Buffer<V> query_block, grad_block, query_sum, out_sum, inner, outer, inner_gradient, outer_gradient, mixed, rest;
    Buffer<V> dropped, spatial_lanes, pose_lanes;

    Index per_tile_outer() const { return call.regular ? 1 : P; }

   public:
    using Number = T;

    Worker(const Call& c, const Layout<T>& l, bool backward)
        : call(c), layout(l), Q(c.queries), M(c.keys), P(c.outputs), d(c.channels), UV(c.rows * c.columns),
          scale(static_cast<T>(1 / std::sqrt(static_cast<double>(c.channels)))),
          spatial{static_cast<const T*>(c.spatial), UV * d, 1},
          pose{static_cast<const T*>(c.pose), M * d, 1},
          dropout(c),
          query(Q * d * l.plane), key(M * d * l.plane), value(M * d * l.plane),
          grad(backward ? P * d * l.plane : 0),
          key_gradient(backward ? M * d * l.plane : 0), value_gradient(backward ? M * d * l.plane : 0),
          result((backward ? Q : P) * d * l.plane),
          query_block(TILE * d), grad_block(P * d), query_sum(TILE * d), out_sum(P * d),
          inner(l.most_neighbours * TILE * M), outer(l.most_neighbours * TILE * per_tile_outer()),
          inner_gradient(backward ? l.most_neighbours * TILE * M : 0),
          outer_gradient(backward ? l.most_neighbours * TILE * per_tile_outer() : 0),
          mixed(l.most_neighbours * TILE * (d + 1)), rest((2 * P + M + TILE + d) * TILE),
          dropped(dropout.on ? l.most_neighbours * TILE * (c.regular ? M : P) : 0),
          spatial_lanes(backward ? P * UV * d : 0), pose_lanes(backward ? Q * M * d : 0) {}

    void forward(Index slice) {
        enter(slice);
        for (const Block& block : layout.blocks) {
            for (Index i = 0; i < P * d; ++i) out_sum.data()[i] = V{};
            for (Index first = 0; first < Q; first += TILE) {
                const Tile tile{std::min(TILE, Q - first)};
                take(query, block, first, tile, query_block);
                call.regular ? forward_regular(block, first, tile) : forward_summed(block, first, tile);
            }
            give(out_sum, P, result, block);
        }
        unpack(result, call.out, P, slice, T(1));
    }

    void backward(Index slice, T* spatial_part, T* pose_part) {
        enter(slice);
        pack(call.out, grad, P, slice, T(1));
        key_gradient.clear();
        value_gradient.clear();
        spatial_lanes.clear();
        pose_lanes.clear();
        for (const Block& block : layout.blocks) {
            take(grad, block, 0, P, grad_block);
            for (Index first = 0; first < Q; first += TILE) {
                const Tile tile{std::min(TILE, Q - first)};
                take(query, block, first, tile, query_block);
                for (Index i = 0; i < tile * d; ++i) query_sum.data()[i] = V{};
                call.regular ? backward_regular(block, first, tile) : backward_summed(block, first, tile);
                give(query_sum, tile, result, block, first);
            }
        }
        unpack(result, call.query_gradient, Q, slice, scale);
        unpack(key_gradient, call.key_gradient, M, slice, T(1));
        unpack(value_gradient, call.value_gradient, M, slice, T(1));
        for (Index i = 0; i < P * UV * d; ++i) spatial_part[i] = sum<T>(spatial_lanes.data()[i]);
        for (Index i = 0; i < Q * M * d; ++i) pose_part[i] = sum<T>(pose_lanes.data()[i]);
    }

   private:
    // ---------------------------------------------------------------- planes

    void enter(Index slice) {
        pack(call.query, query, Q, slice, scale);
        pack(call.key, key, M, slice, T(1));
        pack(call.value, value, M, slice, T(1));
        dropout.enter(slice);
    }

    static T* at(const Feature& f, Index b, Index e) {
        return static_cast<T*>(f.data) + b * f.strides[0] + e * f.strides[1];
    }

    void pack(const Feature& from, const Buffer<T>& to, Index poses, Index slice, T factor) const {
        const T* base = at(from, slice / call.heads, slice % call.heads);
        for (Index p = 0; p < poses; ++p)
            for (Index c = 0; c < d; ++c)
                for (Index y = 0; y < call.height; ++y) {
                    const T* row = base + p * from.strides[2] + y * from.strides[3] + c * from.strides[5];
                    T* target = to.data() + (p * d + c) * layout.plane + layout.place(y, 0);
                    for (Index x = 0; x < call.width; ++x) target[x] = row[x * from.strides[4]] * factor;
                }
    }

    void unpack(const Buffer<T>& from, const Feature& to, Index poses, Index slice, T factor) const {
        T* base = at(to, slice / call.heads, slice % call.heads);
        for (Index p = 0; p < poses; ++p)
            for (Index c = 0; c < d; ++c)
                for (Index y = 0; y < call.height; ++y) {
                    T* row = base + p * to.strides[2] + y * to.strides[3] + c * to.strides[5];
                    const T* source = from.data() + (p * d + c) * layout.plane + layout.place(y, 0);
                    for (Index x = 0; x < call.width; ++x) row[x * to.strides[4]] = source[x] * factor;
                }
    }

    Planes<T> planes(const Buffer<T>& of, Index place) const { return {of.data() + place, d * layout.plane, layout.plane}; }

    Planes<T> vectors(const Buffer<V>& of) const { return {reinterpret_cast<T*>(of.data()), d * L, L}; }

    void take(const Buffer<T>& from, const Block& block, Index first, Index poses, const Buffer<V>& to) const {
        const Planes<T> source = planes(from, block.start).from(first);
        for (Index p = 0; p < poses; ++p)
            for (Index c = 0; c < d; ++c) to.data()[p * d + c] = source(p, c);
    }

    // Vectors of a block to planes. What lies behind the last query is overwritten by the next block, or never read.
    void give(const Buffer<V>& from, Index poses, const Buffer<T>& to, const Block& block, Index first = 0) const {
        const Planes<T> target = planes(to, block.start).from(first);
        for (Index p = 0; p < poses; ++p)
            for (Index c = 0; c < d; ++c) target.put(p, c, from.data()[p * d + c]);
    }

    V seen(const Block& block, const Neighbour& near) const { return load(layout.visible.data() + block.start + near.shift); }

    // 1/x in the lanes that are queries, 0 in the others.
    V reciprocal(V x, const Block& block) const {
        const V here = load(layout.query_here.data() + block.start);
        return here > V{} ? 1 / x : V{};
    }

    V kept(Index pair, const Block& block, const Neighbour& near) const {
        return dropout(pair, layout.pixel.data() + block.start, near.offset);
    }

    Numbers<T> encoding(const Neighbour& near) const { return {spatial.base + near.offset * d, spatial.pose, 1}; }

    // q(a)·pose(a, m) for the poses of a tile: constant over a block's keys.
    void pose_scores(Index first, Tile tile, const Matrix<T>& to) const {
        for (Index a = 0; a < tile; ++a)
            dot<T>(vectors(query_block).from(a), 1, Numbers<T>{pose.base + (first + a) * pose.pose, d, 1}, M, d, to.from(a, 0));
    }

    static constexpr T lowest = std::numeric_limits<T>::lowest();

    // ---------------------------------------------------------------- regular form

    Matrix<T> keyed(const Buffer<V>& of, Index n) const { return {of.data() + n * TILE * M, M, 1}; }

    // Unnormalised weights exp(s − max) of every neighbour to `inner`; returns the normalisers of the tile.
    void regular_weights(const Block& block, Index first, Tile tile, V* normaliser) {
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
                    s(a, m) = exponential(s(a, m) - top[a]);
                    total[a] += s(a, m);
                }
        }
        for (Index a = 0; a < tile; ++a) normaliser[a] = reciprocal(total[a], block);
    }

    // q(a)·spatial(a, offset): output pose a is asked by query pose a alone.
    void spatial_scores(const Planes<T>& q, const Neighbour& near, Index first, Tile tile, V* to) const {
        const Numbers<T> e = encoding(near).from(first);
        for (Index a = 0; a < tile; ++a) to[a] = V{};
        for (Index c = 0; c < d; ++c)
            for (Index a = 0; a < tile; ++a) to[a] += q(a, c) * e(a, c);
    }

    void forward_regular(const Block& block, Index first, Tile tile) {
        V normaliser[TILE];
        regular_weights(block, first, tile, normaliser);
        const Planes<T> out = vectors(out_sum).from(first);
        for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
            const Neighbour& near = block.neighbours[n];
            const Matrix<T> w = keyed(inner, n);
            if (dropout.on)
                for (Index a = 0; a < tile; ++a)
                    for (Index m = 0; m < M; ++m) w(a, m) *= kept((first + a) * M + m, block, near);
            mix<T>(w.transposed(), planes(value, block.start + near.shift), M, out, tile, d);
        }
        for (Index a = 0; a < tile; ++a)
            for (Index c = 0; c < d; ++c) out.put(a, c, out(a, c) * normaliser[a]);
    }

    void backward_regular(const Block& block, Index first, Tile tile) {
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
                        const V k = kept((first + a) * M + m, block, near);
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

    // From Σ_j ds(a, m): its share in the gradients of the queries and of the pose encodings.
    void pose_gradients(Index first, Tile tile, const Matrix<T>& pose_sum) {
        const Planes<T> q = vectors(query_block), dq = vectors(query_sum);
        for (Index a = 0; a < tile; ++a) {
            mix<T>(pose_sum.from(a, 0).transposed(), Numbers<T>{pose.base + (first + a) * pose.pose, d, 1}, M, dq.from(a), 1, d);
            mix<T>(pose_sum.from(a, 0), q.from(a), 1, vectors(pose_lanes).from((first + a) * M), M, d);
        }
    }

    // ---------------------------------------------------------------- summed form

    // softmax_{j,m}(a + p) = softmax_j(LSE_m(a) + p)·softmax_m(a): the poses first, once for all output poses.

    Matrix<T> posed(const Buffer<V>& of, Index n) const { return {of.data() + n * TILE * P, TILE, 1}; }
    Planes<T> mixture(Index n) const { return {reinterpret_cast<T*>(mixed.data() + n * TILE * (d + 1)), d * L, L}; }
    V* normalisers(Index n) const { return mixed.data() + n * TILE * (d + 1) + TILE * d; }

    // `inner`: exp(a − max_m a), with its sum over m as the neighbour's normaliser; `outer`: exp(LSE + p − max) without
    // that sum; `total`: the sum of their products over all neighbours.
    void summed_weights(const Block& block, Index first, Tile tile, const Matrix<T>& total) {
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
                for (Index m = 0; m < M; ++m) parts += s(a, m) = M == 1 ? all(T(1)) : exponential(s(a, m) - most);
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
                    o = exponential(o - top(h, a));
                    parts += o * normalisers(n)[a];
                }
                total(h, a) = reciprocal(parts, block);
            }
    }

    void mix_poses(const Block& block, std::size_t n, Tile tile) {
        const Planes<T> u = mixture(n);
        for (Index i = 0; i < TILE * d; ++i) store(u.base + i * L, V{});
        mix<T>(keyed(inner, n).transposed(), planes(value, block.start + block.neighbours[n].shift), M, u, tile, d);
    }

    void forward_summed(const Block& block, Index first, Tile tile) {
        const Matrix<T> normaliser{rest.data(), TILE, 1};
        summed_weights(block, first, tile, normaliser);
        for (std::size_t n = 0; n < block.neighbours.size(); ++n) {
            const Matrix<T> w = posed(outer, n);
            for (Index h = 0; h < P; ++h)
                for (Index a = 0; a < tile; ++a) {
                    w(h, a) *= normaliser(h, a);
                    if (dropout.on) w(h, a) *= kept(h * Q + first + a, block, block.neighbours[n]);
                }
            mix_poses(block, n, tile);
            mix<T>(w.transposed(), mixture(n), tile, vectors(out_sum), P, d);
        }
    }

    void backward_summed(const Block& block, Index first, Tile tile) {
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
                        const V k = kept(h * Q + first + a, block, block.neighbours[n]);
                        posed(dropped, n)(h, a) = w(h, a) * k;
                        dw(h, a) *= k;
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
            if (M == 1) {
                for (Index a = 0; a < tile; ++a) ds(a, 0) = of_sum[a];
            } else {
                dot<T>(du, tile, planes(value, place), M, d, ds);
                for (Index a = 0; a < tile; ++a) {
                    V average = V{};
                    for (Index m = 0; m < M; ++m) average += s(a, m) * ds(a, m);
                    for (Index m = 0; m < M; ++m) ds(a, m) = s(a, m) * (of_sum[a] + ds(a, m) - average);
                }
            }
            for (Index a = 0; a < tile; ++a)
                for (Index m = 0; m < M; ++m) pose_sum(a, m) += ds(a, m);
            mix<T>(ds, q, tile, planes(key_gradient, place), M, d);
            mix<T>(ds.transposed(), planes(key, place), M, dq, tile, d);
        }
        pose_gradients(first, tile, pose_sum);
    }
};

// ------------------------------------------------------------------------------------------------ all slices

// f() on several threads at once: torch's own where they can be had, which would otherwise wait beside ours, spinning.
template <class F>
void on_threads(const Call& call, Index threads, F&& f) {
    if (threads > 1 && call.team) {
        call.team([](void* data) { (*static_cast<std::remove_reference_t<F>*>(data))(); }, &f, unsigned(threads), 0);
        return;
    }
    std::vector<std::thread> others;
    try {
        for (Index i = 1; i < threads; ++i) others.emplace_back(f);
    } catch (const std::system_error&) {  // no more to be had: those there are do the work
    }
    f();
    for (std::thread& other : others) other.join();
}

// f(worker, slice) for every slice, on as many threads as asked for. False when memory ran out.
template <class Worker, class F>
bool over_slices(const Call& call, bool backward, F&& f) {
    std::atomic<Index> next{0};
    std::atomic<bool> failed{false};
    const Index slices = call.batch * call.heads;
    try {
        const Layout<typename Worker::Number> layout(call);
        auto serve = [&] {
            try {
                Worker worker(call, layout, backward);
                for (Index slice; !failed && (slice = next++) < slices;) f(worker, slice);
            } catch (const std::bad_alloc&) {
                failed = true;
            }
        };
        on_threads(call, std::min(call.threads, slices), serve);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return !failed;
}

template <class Worker>
bool forward(const Call& call) {
    return over_slices<Worker>(call, false, [](Worker& worker, Index slice) { worker.forward(slice); });
}

template <class Worker>
bool backward(const Call& call) {
    using T = typename Worker::Number;
    const Index slices = call.batch * call.heads;
    const Index of_spatial = call.outputs * call.rows * call.columns * call.channels;
    const Index of_pose = call.queries * call.keys * call.channels;
    std::vector<T> parts;
    try {
        parts.resize(slices * (of_spatial + of_pose));
    } catch (const std::bad_alloc&) {
        return false;
    }
    const bool done = over_slices<Worker>(call, true, [&](Worker& worker, Index slice) {
        T* part = parts.data() + slice * (of_spatial + of_pose);
        worker.backward(slice, part, part + of_spatial);
    });
    T* to_spatial = static_cast<T*>(call.spatial_gradient);
    T* to_pose = static_cast<T*>(call.pose_gradient);
    std::memset(to_spatial, 0, of_spatial * sizeof(T));
    std::memset(to_pose, 0, of_pose * sizeof(T));
    for (Index slice = 0; slice < slices; ++slice) {
        const T* part = parts.data() + slice * (of_spatial + of_pose);
        for (Index i = 0; i < of_spatial; ++i) to_spatial[i] += part[i];
        for (Index i = 0; i < of_pose; ++i) to_pose[i] += part[of_spatial + i];
    }
    return done;
}

// f(worker type) with the number of poses that was compiled.
template <class F>
bool with_poses(const Call& call, F&& f) {
    const bool equal = call.queries == call.keys && call.keys == call.outputs;
    switch (equal ? call.queries : 0) {
        case 1: return f(std::integral_constant<Index, 1>{});
        case 4: return f(std::integral_constant<Index, 4>{});
        case 8: return f(std::integral_constant<Index, 8>{});
        default: return f(std::integral_constant<Index, 0>{});
    }
}

}  // namespace

// ------------------------------------------------------------------------------------------------ C

extern "C" {

// 0: done; 1: out of memory.
int gsa_forward_float(const Call* call) {
    return with_poses(*call, [&](auto n) { return forward<Worker<float, n>>(*call); }) ? 0 : 1;
}
int gsa_backward_float(const Call* call) {
    return with_poses(*call, [&](auto n) { return backward<Worker<float, n>>(*call); }) ? 0 : 1;
}
int gsa_forward_double(const Call* call) { return forward<Worker<double, 0>>(*call) ? 0 : 1; }
int gsa_backward_double(const Call* call) { return backward<Worker<double, 0>>(*call) ? 0 : 1; }
}
