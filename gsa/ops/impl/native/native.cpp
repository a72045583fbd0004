// The CPU kernels of group self-attention.
//
// A slice is one head of one sample. Its queries, keys and values are laid out as planes, one for each pose and
// channel, whose rows follow one another; all arithmetic is on vectors of neighbouring pixels of a plane. A block is one
// such vector of queries, which may begin in one row and end in the next. For every relative position the keys of a
// block are the same planes, shifted, so that scores and sums are small products of matrices over poses and channels,
// four by four poses at a time; where a shift leaves the picture or its row, the key is not visible. Nothing larger than
// one block's scores is kept, and backward computes them again. What is not a number at the end of a row is met, times 0,
// at the beginning of the next.
//
// Slices are independent: each has one owner, writes its own part of the gradients of the encodings, and these parts
// are added in order, so that no result depends on the number of threads.

#include <type_traits>

#include "call.hpp"
#include "slices.hpp"
#include "worker.hpp"

namespace {

// f(worker type) with the number of poses that was compiled.
template <class F>
bool with_poses(const Call& call, F&& f) {
    const bool equal = call.queries == call.keys && call.keys == call.outputs;
    switch (equal ? call.queries : 0) {
        case 4: return f(std::integral_constant<Index, 4>{});
        case 8: return f(std::integral_constant<Index, 8>{});
        case 12: return f(std::integral_constant<Index, 12>{});
        case 16: return f(std::integral_constant<Index, 16>{});
        default: return f(std::integral_constant<Index, 0>{});
    }
}

}  // namespace

extern "C" {

// By which _kernels.py knows a build of other sources.
Index gsa_call_size() { return sizeof(Call); }

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
