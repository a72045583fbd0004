// All slices of a call, on several threads.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "call.hpp"
#include "layout.hpp"
#include "lifting.hpp"
#include "regular.hpp"
#include "summed.hpp"

namespace {

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

}  // namespace
