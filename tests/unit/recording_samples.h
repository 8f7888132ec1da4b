// SPDX-License-Identifier: Apache-2.0
// Records for tests of recordings: one of every kind, and any number at random.

#ifndef PRAWN_UNIT_RECORDING_SAMPLES_H
#define PRAWN_UNIT_RECORDING_SAMPLES_H

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "record/recording.h"
#include "record/trace_text.h"

namespace prawn {

inline recording_header sample_header(unsigned nodes = 3) {
    recording_header h;
    h.prawn_version = "1.2.3";
    h.time_mode = "free-running";
    h.nodes = nodes;
    h.config = {"checker=false", "nodes=" + std::to_string(nodes),
                "time=free-running"};
    h.profile_name = "fast";
    h.profile_text = "name = \"fast\"\n# \xc3\xa4\n";
    h.profile_crc = 0xfedcba98;
    h.firmware_hash = "";
    return h;
}

// Records of a run that never was, in order, each with what its kind has.
class sample_records
{
public:
    explicit sample_records(std::uint32_t seed, unsigned nodes = 3) :
        m_random(seed), m_nodes(nodes) {}

    // Its data is good until the next call.
    record next() {
        return of(static_cast<record_kind>(1 + any(RECORD_KINDS - 1)));
    }
    record of(record_kind kind) {
        record r;
        m_time += any(3) ? any(5000) : any(2) ? 0 : number() >> 24;
        r.time_ps = m_time;
        r.delta = any(3) ? 0 : static_cast<std::uint32_t>(number());
        r.node = static_cast<std::uint16_t>(any(m_nodes));
        r.kind = kind;
        r.nested = r.to_card() && any(4) == 0;
        switch (kind) {
            case record_kind::BUS_MASTER:
            case record_kind::INTX:
                r.flag = any(2) != 0;
                break;
            case record_kind::BAR_WRITE:
                r.posted = any(2) != 0;
                [[fallthrough]];
            case record_kind::BAR_READ:
                r.bar = static_cast<std::uint8_t>(any(6));
                r.address = number();
                [[fallthrough]];
            case record_kind::BAR_RESULT:
                r.order = order();
                r.length = std::uint64_t{1} << any(4);
                if (kind != record_kind::BAR_READ)
                    r.value =
                        number() & (~std::uint64_t{0} >> (64 - 8 * r.length));
                break;
            case record_kind::BAR_WRITTEN:
            case record_kind::BAR_ACCEPTED:
            case record_kind::DMA_ACCEPTED:
                r.order = order();
                break;
            case record_kind::MAP:
            case record_kind::UNMAP:
                r.address = number();
                r.length = number();
                break;
            case record_kind::DMA_READ:
            case record_kind::DMA_WRITE:
                dma(r);
                break;
            case record_kind::MSIX:
                r.vector = static_cast<std::uint32_t>(number());
                break;
            case record_kind::MEMORY:
                r.address = number();
                data(r, 1 + any(RECORD_MAX_DATA));
                break;
            default:
                break;
        }
        return r;
    }

private:
    std::uint64_t any(std::uint64_t n) { return m_random() % n; }
    // Of every length.
    std::uint64_t number() { return m_random() >> any(64); }
    std::uint64_t order() { return any(3) ? ++m_order : (m_order = number()); }
    void data(record& r, std::uint64_t size) {
        m_data.resize(size);
        for (char& c : m_data)
            c = static_cast<char>(any(4) ? 0 : any(256));
        r.data = reinterpret_cast<const std::uint8_t*>(m_data.data());
        r.data_size = static_cast<std::uint32_t>(size);
    }
    void dma(record& r) {
        r.order = order();
        r.address = number();
        r.length = 1 + (any(2) ? any(64) : any(RECORD_MAX_DATA));
        r.channel = static_cast<std::uint8_t>(any(16));
        r.context = any(2) ? std::uint16_t{0xffff}
                           : static_cast<std::uint16_t>(any(0xffff));
        r.status = static_cast<record_status>(any(3));
        r.late = any(3) == 0;
        if (r.late)
            r.began_ps = r.time_ps - any(r.time_ps + 1);
        if (r.kind == record_kind::DMA_WRITE || r.status == record_status::OK)
            data(r, r.length);
    }

    std::mt19937_64 m_random;
    const unsigned m_nodes;
    std::uint64_t m_time = 0;
    std::uint64_t m_order = 0;
    std::string m_data;
};

// All that can be read, copied; and how it ended.
struct read_back {
    explicit read_back(const std::string& path) : reader(path) {
        record r;
        while (reader.next(r))
            records.emplace_back(r);
    }
    // As far as it goes, the same as these.
    bool begins(const std::vector<kept_record>& all) const {
        if (records.size() > all.size())
            return false;
        for (std::size_t i = 0; i < records.size(); i++)
            if (records[i].get() != all[i].get())
                return false;
        return true;
    }
    recording_reader reader;
    std::vector<kept_record> records;
};

}  // namespace prawn

#endif
