// SPDX-License-Identifier: Apache-2.0
//
// Copies from and to memory that may vanish: the client can truncate the file
// behind its memory at any time, and the next touch raises SIGBUS here.

#include <setjmp.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "qemu-device/vfio_user/guarded_copy.h"
#include "qemu-device/vfio_user/guest_memory.h"

namespace prawn {
namespace vfio_user {

namespace {

// Below this a loop over words is as fast as memcpy, and gives the promise
// that no aligned word is seen half written. Above it memcpy moves whole
// vectors; with the destination aligned to 8 their edges fall on words.
constexpr std::size_t SMALL_COPY = 256;

// The compiler's own jump costs a few stores, a fraction of sigsetjmp; at
// 4 KiB that shows. It does not restore the signal mask and need not: the
// handler is installed with SA_NODEFER. Sanitizers follow the library's jump
// only, and ThreadSanitizer runs handlers with every signal blocked.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
using jump_buffer = sigjmp_buf;
#define PRAWN_SET_JUMP(buffer) sigsetjmp(buffer, 1)
#define PRAWN_JUMP(buffer) siglongjmp(buffer, 1)
#else
using jump_buffer = void* [5];
#define PRAWN_SET_JUMP(buffer) __builtin_setjmp(buffer)
#define PRAWN_JUMP(buffer) __builtin_longjmp(buffer, 1)
#endif

struct guard {
    jump_buffer environment;
    const std::uint8_t* first[2];  ///< destination and source
    const std::uint8_t* last[2];
    std::uint8_t* destination;
    const std::uint8_t* source;
    std::size_t length;
};

thread_local guard* t_guard = nullptr;

struct sigaction g_previous;

void forward(int number, siginfo_t* info, void* context) {
    if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
        g_previous.sa_sigaction(number, info, context);
    } else if (g_previous.sa_handler == SIG_DFL ||
               g_previous.sa_handler == SIG_IGN) {
        // The faulting instruction runs again and dies of the default action.
        struct sigaction action {
        };
        action.sa_handler = SIG_DFL;
        ::sigaction(SIGBUS, &action, nullptr);
    } else {
        g_previous.sa_handler(number);
    }
}

void on_sigbus(int number, siginfo_t* info, void* context) {
    guard* const g = t_guard;
    if (g != nullptr && info != nullptr) {
        const auto* address = static_cast<const std::uint8_t*>(info->si_addr);
        for (int i = 0; i < 2; i++) {
            if (address >= g->first[i] && address < g->last[i]) {
                t_guard = nullptr;
                PRAWN_JUMP(g->environment);
            }
        }
    }
    forward(number, info, context);
}

inline std::uintptr_t misaligned(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) & 7u;
}

using word = std::uint64_t;

inline word load_any(const std::uint8_t* from) {
    word w;
    std::memcpy(&w, from, sizeof(w));
    return w;
}

inline void copy_bytes(std::uint8_t* to, const std::uint8_t* from,
                       std::size_t n) {
    for (std::size_t i = 0; i < n; i++)
        __atomic_store_n(to + i, from[i], __ATOMIC_RELAXED);
}

void copy_ordered(std::uint8_t* to, const std::uint8_t* from,
                  std::size_t length) {
    std::size_t head = (8 - misaligned(to)) & 7u;
    if (head > length)
        head = length;
    copy_bytes(to, from, head);
    to += head;
    from += head;
    length -= head;

    const std::size_t tail = length & 7u;
    std::size_t body = length - tail;
    const bool publish = tail == 0 && body != 0;
    if (publish)
        body -= 8;
    if (body <= SMALL_COPY) {
        for (std::size_t i = 0; i < body; i += 8) {
            __atomic_store_n(reinterpret_cast<word*>(to + i),
                             load_any(from + i), __ATOMIC_RELAXED);
        }
    } else {
        std::memcpy(to, from, body);
    }
    if (publish) {
        __atomic_store_n(reinterpret_cast<word*>(to + body),
                         load_any(from + body), __ATOMIC_RELEASE);
    } else {
        copy_bytes(to + body, from + body, tail);
    }
}

// Loads that do not tear aligned words of the source, for short copies.
void copy_from_shared(std::uint8_t* to, const std::uint8_t* from,
                      std::size_t length) {
    if (length > SMALL_COPY || misaligned(from) != 0) {
        std::memcpy(to, from, length);
        return;
    }
    std::size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        const word w = __atomic_load_n(reinterpret_cast<const word*>(from + i),
                                       __ATOMIC_RELAXED);
        std::memcpy(to + i, &w, sizeof(w));
    }
    std::memcpy(to + i, from + i, length - i);
}

using copier = void (*)(std::uint8_t*, const std::uint8_t*, std::size_t);

// Not inlined, and without locals that live across the jump.
template <copier COPY>
__attribute__((noinline)) bool run_guarded(void* destination,
                                           const void* source,
                                           std::size_t length) {
    guard g;
    g.destination = static_cast<std::uint8_t*>(destination);
    g.source = static_cast<const std::uint8_t*>(source);
    g.length = length;
    g.first[0] = g.destination;
    g.last[0] = g.first[0] + length;
    g.first[1] = g.source;
    g.last[1] = g.first[1] + length;
    if (PRAWN_SET_JUMP(g.environment) != 0)
        return false;
    t_guard = &g;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    COPY(g.destination, g.source, g.length);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_guard = nullptr;
    return true;
}

}  // namespace

void install_sigbus_handler() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action {
        };
        action.sa_sigaction = on_sigbus;
        action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        ::sigaction(SIGBUS, &action, &g_previous);
    });
}

bool guarded_copy(void* destination, const void* source, std::size_t length) {
    return run_guarded<copy_from_shared>(destination, source, length);
}

bool guarded_publish(void* destination, const void* source,
                     std::size_t length) {
    return run_guarded<copy_ordered>(destination, source, length);
}

}  // namespace vfio_user
}  // namespace prawn
