// One worker: its memory, the way of a slice through it, and what the forms share.

#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "buffer.hpp"
#include "call.hpp"
#include "dropout.hpp"
#include "layout.hpp"
#include "products.hpp"
#include "vectors.hpp"

namespace {

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

// One vector for each (neighbour, channel): the first pose of a feature as a block sees it.
template <class T>
struct Around {
    const T* base;
    const Neighbour* near;
    Index channel;
    Lanes<T> operator()(Index n, Index c) const { return load(base + near[n].shift + c * channel); }
    Around from(Index n) const { return {base, near + n, channel}; }
};

// One vector for each (neighbour, channel): what is kept for the encoding of its relative position in one output pose.
template <class T>
struct AtNeighbours {
    Lanes<T>* base;
    const Neighbour* near;
    Index channels;
    Lanes<T> operator()(Index n, Index c) const { return base[near[n].offset * channels + c]; }
    void put(Index n, Index c, Lanes<T> x) const { base[near[n].offset * channels + c] = x; }
    AtNeighbours from(Index n) const { return {base, near + n, channels}; }
};

// The same number in all lanes: the encoding of a neighbour's relative position in one output pose.
template <class T>
struct Encodings {
    const T* base;
    const Neighbour* near;
    Index channels;
    Lanes<T> operator()(Index n, Index c) const { return all(base[near[n].offset * channels + c]); }
    Encodings from(Index n) const { return {base, near + n, channels}; }
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
    const T scale;  // 1/√d
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
          inner_gradient(backward && Q * M > 1 ? l.most_neighbours * TILE * M : 0),
          outer_gradient(backward ? l.most_neighbours * TILE * per_tile_outer() : 0),
          mixed(Q * M > 1 && !c.regular ? l.most_neighbours * TILE * (d + 1) : 0), rest((2 * P + M + d) * TILE),
          dropped(backward && dropout.on ? l.most_neighbours * TILE * (c.regular ? M : P) : 0),
          spatial_lanes(backward ? P * UV * d : 0), pose_lanes(backward ? Q * M * d : 0) {}

    void forward(Index slice) {
        enter(slice);
        for (const Block& block : layout.blocks) {
            for (Index i = 0; i < P * d; ++i) out_sum.data()[i] = V{};
            for (Index first = 0; first < Q; first += TILE) {
                const Tile tile{std::min(TILE, Q - first)};
                take(query, block, first, tile, query_block);
                Q * M == 1     ? forward_lifting(block)
                : call.regular ? forward_regular(block, first, tile)
                               : forward_summed(block, first, tile);
            }
            give(out_sum, P, result, block);
        }
        unpack(result, call.out, P, slice, dropout.kept, call.crop);
    }

    void backward(Index slice, T* spatial_part, T* pose_part) {
        enter(slice);
        pack(call.out, grad, P, slice, dropout.kept, call.crop);
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
                Q * M == 1     ? backward_lifting(block)
                : call.regular ? backward_regular(block, first, tile)
                               : backward_summed(block, first, tile);
                give(query_sum, tile, result, block, first);
            }
        }
        unpack(result, call.query_gradient, Q, slice, scale);
        unpack(key_gradient, call.key_gradient, M, slice, T(LN_2));
        unpack(value_gradient, call.value_gradient, M, slice, T(1));
        for (Index i = 0; i < P * UV * d; ++i) spatial_part[i] = T(LN_2) * sum<T>(spatial_lanes.data()[i]);
        for (Index i = 0; i < Q * M * d; ++i) pose_part[i] = T(LN_2) * sum<T>(pose_lanes.data()[i]);
    }

   private:
    // ---------------------------------------------------------------- planes

    void enter(Index slice) {
        pack(call.query, query, Q, slice, T(scale / LN_2));
        pack(call.key, key, M, slice, T(1));
        pack(call.value, value, M, slice, T(1));
        dropout.enter(slice);
    }

    static T* at(const Feature& f, Index b, Index e) {
        return static_cast<T*>(f.data) + b * f.strides[0] + e * f.strides[1];
    }

    static void copy(const T* from, Index from_stride, T* to, Index to_stride, Index count, T factor) {
        if (from_stride == 1 && to_stride == 1 && count >= L)
            for (Index end = L; end < count + L; end += L) {  // the last vector may overlap the one before
                const Index x = std::min(end, count) - L;
                store(to + x, load(from + x) * factor);
            }
        else
            for (Index x = 0; x < count; ++x) to[x * to_stride] = from[x * from_stride] * factor;
    }

    // f(pixels of a pose and channel of the feature, their stride, its place in the plane, their number), row by row,
    // or all rows at once where they follow one another. `crop`: pixels at every border that the feature is without.
    template <class F>
    void each_row(const Feature& of, Index poses, Index slice, Index crop, F&& f) const {
        T* base = at(of, slice / call.heads, slice % call.heads);
        Index rows = call.height - 2 * crop, columns = call.width - 2 * crop;
        if (columns == call.width && of.strides[3] == columns * of.strides[4]) columns *= std::exchange(rows, 1);
        for (Index c = 0; c < d; ++c)  // in the order in which our layers' features lie in memory
            for (Index p = 0; p < poses; ++p)
                for (Index y = 0; y < rows; ++y)
                    f(base + p * of.strides[2] + y * of.strides[3] + c * of.strides[5], of.strides[4],
                      (p * d + c) * layout.plane + layout.place(y + crop, crop), columns);
    }

    void pack(const Feature& from, const Buffer<T>& to, Index poses, Index slice, T factor, Index crop = 0) const {
        each_row(from, poses, slice, crop, [&](const T* row, Index stride, Index place, Index count) {
            copy(row, stride, to.data() + place, 1, count, factor);
        });
    }

    void unpack(const Buffer<T>& from, const Feature& to, Index poses, Index slice, T factor, Index crop = 0) const {
        each_row(to, poses, slice, crop, [&](T* row, Index stride, Index place, Index count) {
            copy(from.data() + place, 1, row, stride, count, factor);
        });
    }

    Planes<T> planes(const Buffer<T>& of, Index place) const { return {of.data() + place, d * layout.plane, layout.plane}; }

    Around<T> around(const Buffer<T>& of, const Block& block) const {
        return {of.data() + block.start, block.neighbours.data(), layout.plane};
    }

    Planes<T> vectors(const Buffer<V>& of) const { return {reinterpret_cast<T*>(of.data()), d * L, L}; }

    void take(const Buffer<T>& from, const Block& block, Index first, Index poses, const Buffer<V>& to) const {
        const Planes<T> source = planes(from, block.start).from(first);
        for (Index p = 0; p < poses; ++p)
            for (Index c = 0; c < d; ++c) to.data()[p * d + c] = source(p, c);
    }

    // Vectors of a block to planes. Lanes that are no queries are 0 in backward, and not read in forward.
    void give(const Buffer<V>& from, Index poses, const Buffer<T>& to, const Block& block, Index first = 0) const {
        const Planes<T> target = planes(to, block.start).from(first);
        for (Index p = 0; p < poses; ++p)
            for (Index c = 0; c < d; ++c) target.put(p, c, from.data()[p * d + c]);
    }

    // 1/x in the lanes that are queries, 0 in the others.
    V reciprocal(V x, const Block& block) const {
        const V here = load(layout.query_here.data() + block.start);
        return here > V{} ? 1 / x : V{};
    }

    // −1 in the lanes where dropout leaves the weights of a block's neighbour n.
    [[gnu::always_inline]] typename Of<T>::Whole stays(Index pair, const Block& block, std::size_t n) const {
        if (layout.elements.empty())
            return dropout.stays(dropout.element(pair, layout.pixel.data() + block.start, block.neighbours[n].offset));
        return dropout.stays(dropout.load_hash(layout.elements.data() + block.elements + (n * layout.pairs + pair) * L));
    }

    // One pose of vectors, times a factor.
    void scale_by(V factor, const Planes<T>& x) const {
        for (Index c = 0; c < d; ++c) x.put(0, c, x(0, c) * factor);
    }

    Numbers<T> encoding(const Neighbour& near) const { return {spatial.base + near.offset * d, spatial.pose, 1}; }

    Encodings<T> encodings(const Block& block, Index output) const {
        return {spatial.base + output * spatial.pose, block.neighbours.data(), d};
    }

    AtNeighbours<T> encoding_gradients(const Block& block, Index output) const {
        return {spatial_lanes.data() + output * UV * d, block.neighbours.data(), d};
    }

    // q(a)·pose(a, m) for the poses of a tile: constant over a block's keys.
    void pose_scores(Index first, Tile tile, const Matrix<T>& to) const {
        for (Index a = 0; a < tile; ++a)
            dot<T>(vectors(query_block).from(a), 1, Numbers<T>{pose.base + (first + a) * pose.pose, d, 1}, M, d, to.from(a, 0));
    }

    static constexpr T lowest = std::numeric_limits<T>::lowest();

    // What is kept of neighbour n for a tile: (query, key pose), (output, query pose), and of unnormalised w
    // Σ_m w(a, m) v(m), Σ_m w(a, m).
    Matrix<T> keyed(const Buffer<V>& of, Index n) const { return {of.data() + n * TILE * M, M, 1}; }
    Matrix<T> posed(const Buffer<V>& of, Index n) const { return {of.data() + n * TILE * P, TILE, 1}; }
    Matrix<T> placed() const { return {outer.data(), TILE, 1}; }  // (neighbour, query)
    Planes<T> mixture(Index n) const { return {reinterpret_cast<T*>(mixed.data() + n * TILE * (d + 1)), d * L, L}; }
    V* normalisers(Index n) const { return mixed.data() + n * TILE * (d + 1) + TILE * d; }

    // From Σ_j ds(a, m): its share in the gradients of the queries and of the pose encodings.
    void pose_gradients(Index first, Tile tile, const Matrix<T>& pose_sum) {
        const Planes<T> q = vectors(query_block), dq = vectors(query_sum);
        for (Index a = 0; a < tile; ++a) {
            mix<T>(pose_sum.from(a, 0).transposed(), Numbers<T>{pose.base + (first + a) * pose.pose, d, 1}, M, dq.from(a), 1, d);
            mix<T>(pose_sum.from(a, 0), q.from(a), 1, vectors(pose_lanes).from((first + a) * M), M, d);
        }
    }

    // The regular form: regular.hpp.
    void regular_scores(const Block& block, Index first, Tile tile, V* top);
    void forward_regular(const Block& block, Index first, Tile tile);
    void backward_regular(const Block& block, Index first, Tile tile);

    // The summed form: summed.hpp.
    void summed_weights(const Block& block, Index first, Tile tile, const Matrix<T>& total);
    void mix_poses(const Block& block, std::size_t n, Tile tile);
    void forward_summed(const Block& block, Index first, Tile tile);
    void backward_summed(const Block& block, Index first, Tile tile);

    // One pose asks one: lifting.hpp.
    void lifting_weights(const Block& block, const Matrix<T>& w, const Matrix<T>& of_key, V* normaliser);
    void forward_lifting(const Block& block);
    void backward_lifting(const Block& block);
};

}  // namespace
