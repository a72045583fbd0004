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
    Index seen;    // from a query to what Layout::visible says of this key
};

// As many neighbouring queries as a vector has lanes; the last lanes may be no queries.
struct Block {
    Index start;                         // place of the first in its plane
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
    std::vector<T> visible;                    // plane for each v: 0 where x + v − ⌊V/2⌋ is in the picture, else −∞
    std::vector<T> query_here;                 // plane of 1 where a query is that asks, else 0
    std::vector<std::uint32_t> pixel;          // plane of y·W + x
    Index most_neighbours = 0;
    Index pairs;                               // of poses, whose weights are dropped on their own
    std::vector<std::uint32_t> elements;       // Dropout::element of each block's [neighbour, pair, lane]; none if too many

    Index place(Index y, Index x) const { return before + y * width_ + x; }

    explicit Layout(const Call& call) : width_(call.width) {
        const Index half_u = call.rows / 2, half_v = call.columns / 2;
        before = half_u * call.width + half_v;
        const Index lines = (2 * before + call.height * call.width + L + L - 1) / L;
        plane = (lines | 1) * L;  // planes that begin at an odd number of lines share all sets of a cache
        visible.assign(call.columns * plane, -std::numeric_limits<T>::infinity());
        query_here.assign(plane, T(0));
        pixel.assign(plane, 0);
        for (Index y = 0; y < call.height; ++y)
            for (Index x = 0; x < call.width; ++x) {
                pixel[place(y, x)] = static_cast<std::uint32_t>(y * call.width + x);
                for (Index v = 0; v < call.columns; ++v)
                    if (x + v >= half_v && x + v < call.width + half_v) visible[v * plane + place(y, x)] = T(0);
            }
        Index next = 0;
        for (Index y = call.crop; y < call.height - call.crop; ++y)
            for (Index x = call.crop; x < call.width - call.crop; ++x) {
                query_here[place(y, x)] = T(1);
                if (place(y, x) >= next) {
                    blocks.push_back({place(y, x), {}});
                    next = place(y, x) + L;
                }
            }
        for (Block& block : blocks) {
            for (Index u = 0; u < call.rows; ++u)
                for (Index v = 0; v < call.columns; ++v) {
                    if (!call.window[u * call.columns + v]) continue;
                    const Index row = (u - half_u) * call.width, seen = v * plane + row;
                    bool any = false;
                    for (int lane = 0; lane < L; ++lane)
                        any |= query_here[block.start + lane] != 0 && visible[block.start + lane + seen] == 0;
                    if (any) block.neighbours.push_back({u * call.columns + v, row + v - half_v, seen});
                }
            most_neighbours = std::max<Index>(most_neighbours, block.neighbours.size());
        }
        pairs = call.queries * (call.regular ? call.keys : call.outputs);
        hash_elements(call);
    }

   private:
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
