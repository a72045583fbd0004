// Blocks of queries, and the planes they stand in: what is the same for all slices.

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "call.hpp"
#include "dropout.hpp"
#include "vectors.hpp"

namespace {

struct Neighbour {
    Index offset;  // u·V + v
    Index shift;   // from a query to this key, in its plane
    Index row;     // from a query to the pixel of its column in this key's row
    Index column;  // where Layout::in_row begins for v
};

// As many neighbouring queries as a vector has lanes; the last lanes may be no queries.
struct Block {
    Index start, x;                      // place of the first in its plane, and its column of pixels
    std::vector<Neighbour> neighbours;   // the relative positions at which any of them sees a key
    Index elements = 0;                  // where its part of Layout::elements begins
};

constexpr std::size_t MOST_ELEMENTS = 1 << 20;  // 4 MiB

// What is the same for all slices: places, blocks, what is visible.
template <class T>
struct Layout {
    static constexpr int L = Of<T>::count;
    Index before, plane;  // places before the first pixel, and in all
    std::vector<Block> blocks;
    std::vector<T> in_picture;                 // plane of 0, and −∞ above and below the picture
    std::vector<T> in_row;                     // [V, W + L]: 0 where column v of the window of pixel x mod W is in its row, or −∞
    std::vector<T> query_here;                 // plane of 1 where a query is that asks, else 0
    std::vector<std::uint32_t> pixel;          // plane of y·W + x
    Index most_neighbours = 0;
    Index pairs;                               // of poses, whose weights are dropped on their own
    std::vector<std::uint32_t> elements;       // Dropout::element of each block's [neighbour, pair, lane]; none if too many

    Index place(Index y, Index x) const { return before + y * width_ + x; }

    explicit Layout(const Call& call) : width_(call.width) {
        const Index half_u = call.rows / 2, half_v = call.columns / 2;
        before = half_u * call.width + half_v;
        const Index vectors = (2 * before + call.height * call.width + L + L - 1) / L;
        plane = (vectors | 1) * L;  // an odd number, so that the planes of one pixel are not all in the same sets of a cache
        in_picture.assign(plane, unseen);
        in_row.assign(call.columns * (call.width + L), unseen);
        query_here.assign(plane, T(0));
        pixel.assign(plane, 0);
        for (Index y = 0; y < call.height; ++y)
            for (Index x = 0; x < call.width; ++x) {
                in_picture[place(y, x)] = T(0);
                pixel[place(y, x)] = static_cast<std::uint32_t>(y * call.width + x);
            }
        for (Index v = 0; v < call.columns; ++v)
            for (Index i = 0; i < call.width + L; ++i) {
                const Index x = i % call.width + v - half_v;
                if (x >= 0 && x < call.width) in_row[v * (call.width + L) + i] = T(0);
            }
        Index next = 0;
        for (Index y = call.crop; y < call.height - call.crop; ++y)
            for (Index x = call.crop; x < call.width - call.crop; ++x) {
                query_here[place(y, x)] = T(1);
                if (place(y, x) >= next) {
                    blocks.push_back({place(y, x), x, {}});
                    next = place(y, x) + L;
                }
            }
        for (Block& block : blocks) {
            const Index y = (block.start - before) / call.width, last = (block.start - before + L - 1) / call.width;
            for (Index u = std::max<Index>(0, half_u - last); u < std::min(call.rows, call.height + half_u - y); ++u)
                for (Index v = 0; v < call.columns; ++v) {
                    if (!call.window[u * call.columns + v]) continue;
                    const Index row = (u - half_u) * call.width;
                    const Neighbour one{u * call.columns + v, row + v - half_v, row, v * (call.width + L)};
                    if (anyone_sees(block, one)) block.neighbours.push_back(one);
                }
            most_neighbours = std::max<Index>(most_neighbours, block.neighbours.size());
        }
        pairs = call.queries * (call.regular ? call.keys : call.outputs);
        hash_elements(call);
    }

    // 0 in the lanes whose key of this neighbour is in the picture, else −∞.
    Lanes<T> seen(const Block& block, const Neighbour& near) const {
        return load(in_picture.data() + block.start + near.row) + load(in_row.data() + near.column + block.x);
    }

   private:
    static constexpr T unseen = -std::numeric_limits<T>::infinity();

    bool anyone_sees(const Block& block, const Neighbour& near) const {
        const Lanes<T> mask = seen(block, near);
        for (int lane = 0; lane < L; ++lane)
            if (query_here[block.start + lane] != 0 && mask[lane] == 0) return true;
        return false;
    }

    // All places of weights, hashed once for all slices; nothing for one slice, or where the places are too many.
    void hash_elements(const Call& call) {
        std::size_t count = 0;
        for (Block& block : blocks) {
            block.elements = count;
            count += block.neighbours.size() * pairs * L;
        }
        const Dropout<T> dropout(call);
        if (!dropout.on || call.batch * call.heads == 1 || count > MOST_ELEMENTS) return;
        elements.resize(count);
        for (const Block& block : blocks) {
            std::uint32_t* to = elements.data() + block.elements;
            for (const Neighbour& near : block.neighbours)
                for (Index pair = 0; pair < pairs; ++pair, to += L) {
                    const auto element = dropout.element(pair, pixel.data() + block.start, near.offset);
                    std::memcpy(to, &element, sizeof element);
                }
        }
    }

    Index width_;
};

}  // namespace
