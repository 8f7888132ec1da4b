// SPDX-License-Identifier: Apache-2.0
//
// The protocol thread: sockets, epoll, and who is to do what next.

#include "qemu-device/vfio_user/server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "qemu-device/vfio_user/endpoint.h"
#include "qemu-device/vfio_user/log_limiter.h"

namespace prawn {
namespace vfio_user {

namespace {

using clock = std::chrono::steady_clock;

// After a failed accept (no descriptors left): try again, but not at once.
constexpr std::chrono::milliseconds ACCEPT_PAUSE{100};
constexpr int LISTEN_BACKLOG = 8;
constexpr std::size_t MAX_ENDPOINTS = 4000;

enum class source : std::uint32_t { WAKE, LISTEN, CLIENT, UNMASK };

std::uint64_t key(source from, std::size_t index) {
    return static_cast<std::uint64_t>(from) << 32 | index;
}

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        throw std::invalid_argument(
            "socket path is empty or longer than " +
            std::to_string(sizeof(address.sun_path) - 1) + " bytes: " + path);
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

unique_fd new_socket() {
    unique_fd fd(
        ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd)
        fail("socket");
    return fd;
}

// A socket file that nobody listens on is left over from a process that was
// killed. Anything else in that place is not ours to remove.
void remove_stale(const std::string& path, const sockaddr_un& address) {
    struct stat info {
    };
    if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode))
        return;
    const unique_fd probe = new_socket();
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address)) != 0 &&
        errno == ECONNREFUSED)
        ::unlink(path.c_str());
}

}  // namespace

class server::impl : public event_loop
{
public:
    explicit impl(const server_options& options) : m_options(options) {
        m_epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
        m_wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (!m_epoll || !m_wake)
            fail("vfio-user server");
        control(EPOLL_CTL_ADD, m_wake.get(), EPOLLIN, key(source::WAKE, 0));
    }

    ~impl() override { stop(); }

    endpoint_id add(const std::string& path, device& dev) {
        if (m_thread.joinable() || m_stopped)
            throw std::logic_error("vfio-user: endpoints come before start");
        if (m_ports.size() >= MAX_ENDPOINTS)
            throw std::invalid_argument("vfio-user: too many endpoints");
        check_identity(dev.get_identity());
        const sockaddr_un address = address_of(path);
        remove_stale(path, address);
        auto p = std::make_unique<port>();
        p->path = path;
        p->listener = new_socket();
        if (::bind(p->listener.get(),
                   reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)) != 0)
            fail("vfio-user socket " + path);
        struct stat info {
        };
        if (::listen(p->listener.get(), LISTEN_BACKLOG) != 0 ||
            ::lstat(path.c_str(), &info) != 0) {
            const int error = errno;
            ::unlink(path.c_str());
            errno = error;
            fail("vfio-user socket " + path);
        }
        p->inode = info.st_ino;
        p->end = std::make_unique<endpoint>(m_ports.size(), path, dev,
                                            m_options, *this);
        m_ports.push_back(std::move(p));
        return m_ports.size() - 1;
    }

    void start() {
        if (m_thread.joinable() || m_stopped)
            throw std::logic_error("vfio-user: started twice");
        for (std::size_t i = 0; i < m_ports.size(); i++)
            update(i);
        m_thread = std::thread([this] { run(); });
    }

    void stop() {
        if (m_stopped.exchange(true))
            return;
        if (m_thread.joinable()) {
            wake();
            m_thread.join();
        }
        for (auto& p : m_ports) {
            while (!p->take())
                std::this_thread::yield();
            p->end->shut_down();
            p->listener.reset();
            // Another process may have put its own socket there meanwhile.
            struct stat info {
            };
            if (::lstat(p->path.c_str(), &info) == 0 &&
                S_ISSOCK(info.st_mode) && info.st_ino == p->inode)
                ::unlink(p->path.c_str());
        }
    }

    void wake() override {
        const std::uint64_t one = 1;
        const ssize_t n = ::write(m_wake.get(), &one, sizeof(one));
        (void)n;  // full: a wake-up is under way
    }

    void watch_unmask(std::size_t index, int fd, bool start) override {
        // By edge: one that stays readable whatever is read from it must not
        // keep this thread busy.
        control(start ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, EPOLLIN | EPOLLET,
                key(source::UNMASK, index));
    }

    bool borrow(std::size_t index) {
        if (m_stopped || index >= m_ports.size())
            return false;
        port& p = *m_ports[index];
        if (!p.take())
            return false;
        if (m_stopped || p.socket < 0 || p.end->socket() != p.socket ||
            !p.end->wants_input()) {
            p.leave();
            return false;
        }
        // Nothing is reported of it any more, but a hang-up: that once.
        p.events = EPOLLONESHOT;
        control(EPOLL_CTL_MOD, p.socket, p.events, key(source::CLIENT, index));
        return true;
    }

    bool poll(std::size_t index) {
        port& p = *m_ports[index];
        p.end->on_input();
        return p.end->wants_input() && !p.wanted && !m_stopped;
    }

    void give_back(std::size_t index) {
        port& p = *m_ports[index];
        update(index);
        p.leave();
        if (p.wanted.exchange(false))
            wake();
    }

    endpoint* find(std::size_t index) {
        return index < m_ports.size() ? m_ports[index]->end.get() : nullptr;
    }

private:
    // What is below `taken` belongs to the thread that has taken the port: the
    // protocol thread for each thing it does, or a borrower.
    struct port {
        std::string path;
        ino_t inode = 0;
        unique_fd listener;
        clock::time_point accept_again{};  ///< protocol thread only
        std::atomic<bool> taken{false};
        std::atomic<bool> wanted{false};  ///< by the protocol thread, in vain
        std::unique_ptr<endpoint> end;
        bool listening = false;
        int socket = -1;  ///< registered with epoll
        std::uint32_t events = 0;

        bool take() { return !taken.exchange(true); }
        void leave() { taken.store(false); }
    };

    // Does something for a port, and brings epoll in line with what came of
    // it. If the port is lent it is done when it comes back: its borrower sees
    // `wanted`, and epoll or service_all() tell again.
    template <typename F>
    void with(std::size_t index, F what) {
        port& p = *m_ports[index];
        if (!p.take()) {
            p.wanted = true;  // then look again: the borrower looks afterwards
            if (!p.take())
                return;
        }
        what(p);
        update(index);
        p.leave();
    }

    void control(int operation, int fd, std::uint32_t events,
                 std::uint64_t data) {
        epoll_event event{};
        event.events = events;
        event.data.u64 = data;
        ::epoll_ctl(m_epoll.get(), operation, fd, &event);
    }

    // Brings epoll in line with what the endpoint waits for. A socket that
    // was closed has left epoll by itself.
    void update(std::size_t index) {
        port& p = *m_ports[index];
        const endpoint& end = *p.end;
        const bool listening =
            !end.holds_up_next() && p.accept_again == clock::time_point{};
        if (listening != p.listening) {
            control(listening ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, p.listener.get(),
                    EPOLLIN, key(source::LISTEN, index));
            p.listening = listening;
        }
        const std::uint32_t events = (end.wants_input() ? EPOLLIN : 0u) |
                                     (end.wants_output() ? EPOLLOUT : 0u);
        if (end.socket() != p.socket) {
            p.socket = end.socket();
            if (p.socket >= 0)
                control(EPOLL_CTL_ADD, p.socket, events,
                        key(source::CLIENT, index));
        } else if (p.socket >= 0 && events != p.events) {
            control(EPOLL_CTL_MOD, p.socket, events,
                    key(source::CLIENT, index));
        }
        p.events = events;
    }

    void accept(port& p, std::size_t index) {
        // A client that has just gone is not in the way of the next one,
        // whichever of the two events came first.
        p.end->finish_if_gone();
        update(index);  // or a new socket with the old number goes unseen
        if (p.end->holds_up_next())
            return;  // the next one waits in the socket's queue
        unique_fd client(::accept4(p.listener.get(), nullptr, nullptr,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!client) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                errno == ENOMEM) {
                const int error = errno;
                std::uint64_t suppressed = 0;
                if (m_limiter.allow(suppressed)) {
                    spdlog::error("vfio-user {}: cannot accept: {}", p.path,
                                  std::strerror(error));
                }
                p.accept_again = clock::now() + ACCEPT_PAUSE;
            }
            return;
        }
        if (p.end->is_free())
            p.end->attach(std::move(client));
        else
            p.end->refuse();
    }

    static void on_client(endpoint& end, std::uint32_t events) {
        if ((events & EPOLLOUT) != 0)
            end.on_output();
        if (end.wants_input()) {
            if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0)
                end.on_input();
        } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
            end.on_hangup();
        }
    }

    void service_all() {
        const auto now = clock::now();
        for (std::size_t i = 0; i < m_ports.size(); i++) {
            with(i, [now](port& p) {
                if (p.accept_again <= now)
                    p.accept_again = clock::time_point{};
                p.end->service(now);
            });
        }
    }

    // -1 as long as nothing is due: an idle server sleeps for good.
    int timeout() {
        auto first = clock::time_point::max();
        for (auto& p : m_ports) {
            first = std::min(first, p->end->next_deadline());
            if (p->accept_again != clock::time_point{})
                first = std::min(first, p->accept_again);
        }
        if (first == clock::time_point::max())
            return -1;
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(first - clock::now());
        return static_cast<int>(
            std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 60000));
    }

    void run() {
        epoll_event events[16];
        while (!m_stopped) {
            const int wait = timeout();
            const int n = ::epoll_wait(m_epoll.get(), events, 16, wait);
            bool service = n == 0;
            for (int i = 0; i < n; i++) {
                const auto from = static_cast<source>(events[i].data.u64 >> 32);
                const std::size_t index = events[i].data.u64 & 0xffffffff;
                switch (from) {
                    case source::WAKE: {
                        std::uint64_t count;
                        const ssize_t got =
                            ::read(m_wake.get(), &count, sizeof(count));
                        (void)got;
                        service = true;
                        continue;
                    }
                    case source::LISTEN:
                        with(index, [&](port& p) { accept(p, index); });
                        break;
                    case source::CLIENT:
                        with(index, [&](port& p) {
                            on_client(*p.end, events[i].events);
                        });
                        break;
                    case source::UNMASK:
                        with(index, [](port& p) { p.end->on_unmask_event(); });
                        break;
                }
            }
            if (service)
                service_all();
        }
    }

    const server_options m_options;
    unique_fd m_epoll;
    unique_fd m_wake;
    std::vector<std::unique_ptr<port>> m_ports;
    log_limiter m_limiter;
    std::atomic<bool> m_stopped{false};
    std::thread m_thread;
};

server::server(const server_options& options) :
    m_impl(std::make_unique<impl>(options)) {}

server::~server() = default;

endpoint_id server::add_endpoint(const std::string& socket_path, device& dev) {
    return m_impl->add(socket_path, dev);
}

void server::start() {
    m_impl->start();
}

void server::stop() {
    m_impl->stop();
}

void server::complete_read(reply_token token, std::uint64_t value) {
    if (endpoint* end = m_impl->find(endpoint::index_of(token.value)))
        end->complete_read(token.value, value);
}

void server::complete(reply_token token, int error) {
    if (endpoint* end = m_impl->find(endpoint::index_of(token.value)))
        end->complete(token.value, error);
}

void server::resume(endpoint_id endpoint) {
    if (auto* end = m_impl->find(endpoint))
        end->resume();
}

void server::trigger_msix(endpoint_id endpoint, unsigned vector) {
    if (auto* end = m_impl->find(endpoint))
        end->trigger_msix(vector);
}

void server::set_intx(endpoint_id endpoint, bool level) {
    if (auto* end = m_impl->find(endpoint))
        end->set_intx(level);
}

bool server::dma_read(endpoint_id endpoint, std::uint64_t iova,
                      std::size_t size, dma_read_done done) {
    auto* const end = m_impl->find(endpoint);
    if (end == nullptr)
        return false;
    dma_messages::operation op;
    op.is_read = true;
    op.iova = iova;
    op.data.resize(size);
    op.on_read = std::move(done);
    return end->start_dma(std::move(op));
}

bool server::dma_write(endpoint_id endpoint, std::uint64_t iova,
                       const void* data, std::size_t size,
                       dma_write_done done) {
    auto* const end = m_impl->find(endpoint);
    if (end == nullptr)
        return false;
    dma_messages::operation op;
    op.iova = iova;
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    op.data.assign(bytes, bytes + size);
    op.on_write = std::move(done);
    return end->start_dma(std::move(op));
}

bool server::borrow(endpoint_id endpoint) {
    return m_impl->borrow(endpoint);
}

bool server::poll(endpoint_id endpoint) {
    return m_impl->poll(endpoint);
}

void server::give_back(endpoint_id endpoint) {
    m_impl->give_back(endpoint);
}

endpoint_counters server::counters(endpoint_id endpoint) const {
    auto* const end = m_impl->find(endpoint);
    return end == nullptr ? endpoint_counters() : end->counters();
}

bool server::is_connected(endpoint_id endpoint) const {
    auto* const end = m_impl->find(endpoint);
    return end != nullptr && end->is_connected();
}

}  // namespace vfio_user
}  // namespace prawn
