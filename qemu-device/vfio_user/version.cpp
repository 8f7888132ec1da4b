// SPDX-License-Identifier: Apache-2.0

#include "qemu-device/vfio_user/version.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace prawn {
namespace vfio_user {

namespace {

using nlohmann::json;

// Ten times what any client sends; keeps a hostile one from making us parse
// a megabyte.
constexpr std::size_t MAX_TEXT = 4096;

// The proposed number, or what holds without one.
bool take_number(const json& proposed, const char* name, std::uint64_t absent,
                 std::uint64_t& value) {
    const auto it = proposed.find(name);
    if (it == proposed.end()) {
        value = absent;
        return true;
    }
    if (!it->is_number_unsigned())
        return false;
    value = it->get<std::uint64_t>();
    return true;
}

bool take_flag(const json& proposed, const char* name, bool& value) {
    const auto it = proposed.find(name);
    value = false;
    if (it == proposed.end())
        return true;
    if (!it->is_boolean())
        return false;
    value = it->get<bool>();
    return true;
}

std::uint32_t smaller(std::uint64_t proposed, std::uint32_t offered) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(proposed, offered));
}

bool agree(const json& proposed, const capabilities& offer,
           capabilities& agreed, json& answer) {
    std::uint64_t fds;
    std::uint64_t transfer;
    std::uint64_t maps;
    std::uint64_t pages;
    bool multiple;
    if (!take_number(proposed, "max_msg_fds", protocol::DEFAULT_MAX_FDS, fds) ||
        !take_number(proposed, "max_data_xfer_size",
                     protocol::DEFAULT_MAX_DATA_XFER, transfer) ||
        !take_number(proposed, "max_dma_maps", protocol::DEFAULT_MAX_DMA_MAPS,
                     maps) ||
        !take_number(proposed, "pgsizes", protocol::PAGE_SIZE, pages) ||
        !take_flag(proposed, "write_multiple", multiple))
        return false;
    // Maps are checked in pages of 4 KiB; a client without them cannot map.
    if ((pages & protocol::PAGE_SIZE) == 0 || transfer == 0)
        return false;

    // max_msg_fds tells what the *sender* of the message can receive: the
    // client's limits what we send (nothing), ours what it may send.
    agreed.max_msg_fds = offer.max_msg_fds;
    agreed.max_data_xfer_size = smaller(transfer, offer.max_data_xfer_size);
    agreed.max_dma_maps = smaller(maps, offer.max_dma_maps);
    agreed.write_multiple = multiple && offer.write_multiple;

    answer = json::object();
    if (proposed.contains("max_msg_fds"))
        answer["max_msg_fds"] = agreed.max_msg_fds;
    if (proposed.contains("max_data_xfer_size"))
        answer["max_data_xfer_size"] = agreed.max_data_xfer_size;
    if (proposed.contains("pgsizes"))
        answer["pgsizes"] = protocol::PAGE_SIZE;
    if (proposed.contains("max_dma_maps"))
        answer["max_dma_maps"] = agreed.max_dma_maps;
    if (proposed.contains("write_multiple"))
        answer["write_multiple"] = agreed.write_multiple;

    const auto twin = proposed.find("twin_socket");
    if (twin != proposed.end()) {
        bool supported;
        if (!twin->is_object() || !take_flag(*twin, "supported", supported))
            return false;
        answer["twin_socket"] = {{"supported", false}};
    }
    return true;
}

// What may be left out when the reply would be too long, the least important
// first: absent means the default, or "no".
constexpr const char* EXPENDABLE[] = {"twin_socket",  "pgsizes",
                                      "max_dma_maps", "max_data_xfer_size",
                                      "max_msg_fds",  "write_multiple"};

}  // namespace

int negotiate_version(const std::uint8_t* payload, std::size_t size,
                      const capabilities& offer, capabilities& agreed,
                      std::vector<std::uint8_t>& reply) {
    protocol::version version;
    if (size < sizeof(version) || size > sizeof(version) + MAX_TEXT)
        return EINVAL;
    std::memcpy(&version, payload, sizeof(version));
    if (version.major != protocol::VERSION_MAJOR)
        return EINVAL;
    version.minor = std::min(version.minor, protocol::VERSION_MINOR);

    const std::size_t room = size - sizeof(version);
    std::string text;
    json proposed = json::object();
    json root = json::object();
    if (room != 0) {
        const char* const begin =
            reinterpret_cast<const char*>(payload + sizeof(version));
        if (begin[room - 1] != '\0' || std::memchr(begin, 0, room - 1))
            return EINVAL;
        root = json::parse(begin, begin + room - 1, nullptr, false);
        if (!root.is_object())
            return EINVAL;
        if (root.contains("capabilities"))
            proposed = root["capabilities"];
    }
    json answer;
    if (!proposed.is_object() || !agree(proposed, offer, agreed, answer))
        return EINVAL;

    if (room != 0) {
        for (std::size_t drop = 0;; drop++) {
            text = json{{"capabilities", answer}}.dump();
            if (text.size() < room)
                break;
            if (drop == std::size(EXPENDABLE)) {
                text = "{}";
                break;
            }
            answer.erase(EXPENDABLE[drop]);
        }
        if (text.size() >= room)
            text.clear();
    }
    reply.resize(sizeof(version));
    std::memcpy(reply.data(), &version, sizeof(version));
    if (room != 0) {
        reply.insert(reply.end(), text.begin(), text.end());
        reply.push_back(0);
    }
    return 0;
}

}  // namespace vfio_user
}  // namespace prawn
