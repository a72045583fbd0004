// Memory of a worker.

#pragma once

#include <cstdlib>
#include <cstring>
#include <new>

#include "call.hpp"

namespace {

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

}  // namespace
