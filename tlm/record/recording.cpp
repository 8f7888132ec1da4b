// SPDX-License-Identifier: Apache-2.0
#include "record/recording.h"

#include <cstring>
#include <tuple>

#include <nlohmann/json.hpp>

#include "record/record_codec.h"
#include "record/recording_file.h"
#include "support/crc32c.h"

namespace prawn {

namespace {

constexpr const char* NAMES[RECORD_KINDS] = {
    "none",        "attach",       "detach",   "reset",     "bus_master",
    "bar_read",    "bar_write",    "map",      "unmap",     "bar_result",
    "bar_written", "bar_accepted", "dma_read", "dma_write", "dma_accepted",
    "msix",        "intx",         "memory"};

}  // namespace

const char* name(record_kind kind) {
    const auto k = static_cast<std::size_t>(kind);
    return k < RECORD_KINDS ? NAMES[k] : nullptr;
}

record_kind record_kind_of(const std::string& text) {
    for (std::size_t k = 1; k < RECORD_KINDS; k++)
        if (text == NAMES[k])
            return static_cast<record_kind>(k);
    return record_kind::NONE;
}

bool record::operator==(const record& o) const {
    const auto fields = [](const record& r) {
        return std::tie(r.time_ps, r.delta, r.node, r.kind, r.nested, r.bar,
                        r.posted, r.flag, r.late, r.channel, r.context,
                        r.status, r.vector, r.order, r.address, r.length,
                        r.value, r.began_ps, r.data_size);
    };
    return fields(*this) == fields(o) &&
           (data_size == 0 || std::memcmp(data, o.data, data_size) == 0);
}

bool recording_header::operator==(const recording_header& o) const {
    const auto fields = [](const recording_header& h) {
        return std::tie(h.format, h.prawn_version, h.time_mode, h.nodes,
                        h.config, h.profile_name, h.profile_text, h.profile_crc,
                        h.firmware_hash);
    };
    return fields(*this) == fields(o);
}

std::string our_frame(const std::string& contents) {
    std::string frame;
    put_word(frame, OUR_FRAME);
    put_word(frame,
             static_cast<std::uint32_t>(contents.size() + OUR_FRAME_CRC));
    frame += contents;
    put_word(frame, crc32c(contents.data(), contents.size()));
    return frame;
}

std::string header_json(const recording_header& h) {
    nlohmann::ordered_json j;
    j["prawn"] = h.prawn_version;
    j["time"] = h.time_mode;
    j["nodes"] = h.nodes;
    j["config"] = h.config;
    j["profile"] = {{"name", h.profile_name},
                    {"crc32c", h.profile_crc},
                    {"text", h.profile_text}};
    j["firmware"] = h.firmware_hash;
    // A profile may hold bytes that are no UTF-8: never fail for that.
    return j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

recording_header header_of_json(const std::string& text) {
    recording_header h;
    try {
        const nlohmann::json j = nlohmann::json::parse(text);
        h.prawn_version = j.at("prawn").get<std::string>();
        h.time_mode = j.at("time").get<std::string>();
        h.nodes = j.at("nodes").get<unsigned>();
        h.config = j.at("config").get<std::vector<std::string>>();
        h.profile_name = j.at("profile").at("name").get<std::string>();
        h.profile_crc = j.at("profile").at("crc32c").get<std::uint32_t>();
        h.profile_text = j.at("profile").at("text").get<std::string>();
        h.firmware_hash = j.at("firmware").get<std::string>();
    } catch (const nlohmann::json::exception& e) {
        throw recording_error(std::string("its header is damaged (") +
                              e.what() + ")");
    }
    if (h.nodes < 1 || h.nodes > RECORD_MAX_NODES)
        throw recording_error("its header is damaged (" +
                              std::to_string(h.nodes) + " nodes)");
    return h;
}

}  // namespace prawn
