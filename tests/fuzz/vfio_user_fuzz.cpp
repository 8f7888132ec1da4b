// SPDX-License-Identifier: Apache-2.0
//
// Feeds bytes to the protocol parser as a client would, over a socket pair,
// with descriptors of several kinds now and then. Whatever they are, the
// endpoint must neither crash nor hang nor leak a descriptor.
//
// Input: records of a control byte and a length byte, then that many bytes of
// the stream. The control byte says which descriptor comes along and whether
// the device answers before the next record.

#include "tests/fuzz/vfio_user_fuzz.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>

#include "qemu-device/vfio_user/endpoint.h"

namespace prawn {
namespace vfio_user {
namespace {

// Answers everything, but late: when told to.
class lazy_device : public device
{
public:
    lazy_device() {
        m_identity.vendor_id = 0x1b36;
        m_identity.bars[0] = bar_info{1u << 20, true, false};
        m_identity.bars[2] = bar_info{1u << 18, true, false};
        m_identity.bars[4] = bar_info{std::uint64_t{1} << 32, true, true};
        m_identity.msix_vectors = 16;
        m_identity.msix_table_offset = 0x8000;
        m_identity.msix_pba_offset = 0x9000;
        m_identity.intx = true;
    }

    void answer(endpoint& end) {
        while (!m_waiting.empty()) {
            const request r = m_waiting.front();
            m_waiting.pop_front();
            if (r.is_read)
                end.complete_read(r.token.value, 0x1122334455667788);
            else
                end.complete(r.token.value, 0);
        }
    }

    const identity& get_identity() const override { return m_identity; }
    bool can_accept() const override { return m_waiting.size() < 24; }
    void connected() override {}
    void disconnected(reply_token token) override {
        m_memory.clear();
        m_waiting.push_back({false, token});
    }
    void bar_read(unsigned bar, std::uint64_t offset, unsigned size,
                  reply_token token) override {
        check(bar, offset, size);
        m_waiting.push_back({true, token});
    }
    void bar_write(unsigned bar, std::uint64_t offset, unsigned size,
                   std::uint64_t data, bool posted,
                   reply_token token) override {
        check(bar, offset, size);
        if ((size < 8 && (data >> (8 * size)) != 0) || (posted && token))
            std::abort();
        m_waiting.push_back({false, token});
    }
    void reset(reply_token token) override {
        m_waiting.push_back({false, token});
    }
    void bus_master(bool) override {}
    void dma_map(std::shared_ptr<memory_region> region) override {
        char byte;
        const std::uint64_t last = region->iova() + (region->size() - 1);
        if (!m_memory.add(region))
            std::abort();  // the server lets no overlap through
        m_memory.read(last, &byte, 1);
    }
    void dma_unmap(std::shared_ptr<memory_region> region,
                   reply_token token) override {
        if (!m_memory.remove(*region))
            std::abort();
        m_waiting.push_back({false, token});
    }

private:
    struct request {
        bool is_read;
        reply_token token;
    };

    void check(unsigned bar, std::uint64_t offset, unsigned size) const {
        if (bar > 5 || size == 0 || size > 8 || (size & (size - 1)) != 0 ||
            offset % size != 0 || offset >= m_identity.bars[bar].size)
            std::abort();
    }

    identity m_identity;
    guest_memory m_memory;
    std::deque<request> m_waiting;
};

struct quiet_loop : event_loop {
    void wake() override {}
    void watch_unmask(std::size_t, int, bool) override {}
};

int make_descriptor(unsigned kind) {
    switch (kind) {
        case 1:
            return ::eventfd(0, EFD_CLOEXEC);
        case 2: {
            const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
            if (fd >= 0 && ::ftruncate(fd, 1 << 16) != 0)
                std::abort();
            return fd;
        }
        case 3:
            return ::open("/dev/null", O_RDWR | O_CLOEXEC);
        default:
            return -1;
    }
}

void send_piece(int socket, const std::uint8_t* data, std::size_t size,
                unsigned kind) {
    const int fd = make_descriptor(kind);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    iovec iov{const_cast<std::uint8_t*>(data), size};
    msghdr msg{};
    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    if (fd >= 0) {
        msg.msg_control = control;
        msg.msg_controllen = sizeof(control);
        cmsghdr* const c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    // When full, what is lost is lost: that is one more kind of noise.
    (void)::sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (fd >= 0)
        ::close(fd);
}

void drain(int socket) {
    char buffer[65536];
    while (::recv(socket, buffer, sizeof(buffer), MSG_DONTWAIT) > 0) {
    }
}

}  // namespace
}  // namespace vfio_user
}  // namespace prawn

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
    using namespace prawn::vfio_user;
    static const bool quiet = [] {
        spdlog::set_level(spdlog::level::off);
        return true;
    }();
    (void)quiet;

    lazy_device device;
    quiet_loop loop;
    server_options options;
    options.max_outstanding = 8;
    options.max_data_xfer_size = 65536;
    options.max_dma_maps = 8;
    endpoint end(0, "fuzz", device, options, loop);
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                     pair) != 0)
        std::abort();
    unique_fd client(pair[0]);
    end.attach(unique_fd(pair[1]));

    while (size >= 2 && end.socket() >= 0) {
        const unsigned control = data[0];
        const std::size_t length = std::min<std::size_t>(data[1], size - 2);
        send_piece(client.get(), data + 2, length, control & 3u);
        data += 2 + length;
        size -= 2 + length;
        end.on_input();
        if ((control & 4u) != 0) {
            end.trigger_msix(control >> 4u);
            end.set_intx((control & 8u) != 0);
        }
        if ((control & 8u) != 0) {
            device.answer(end);
            end.start_dma([&] {
                dma_messages::operation op;
                op.is_read = (control & 16u) != 0;
                op.data.resize(control);
                return op;
            }());
        }
        end.on_output();
        end.service(endpoint::clock::now());
        drain(client.get());
    }
    client.reset();
    for (int i = 0; i < 200 && end.socket() >= 0; i++) {
        device.answer(end);
        end.service(endpoint::clock::now());
        if (end.wants_input())
            end.on_input();
        else
            end.on_hangup();
    }
    device.answer(end);
    end.service(endpoint::clock::now());
    // Gone, drained, and ready for the next client.
    if (end.socket() >= 0 || !end.is_free())
        std::abort();
    return 0;
}
