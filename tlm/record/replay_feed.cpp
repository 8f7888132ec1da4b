// SPDX-License-Identifier: Apache-2.0
#include "record/replay_feed.h"

#include "record/trace_text.h"

namespace prawn {

namespace {

// What no host and no card can do; null if it makes sense.
const char* trouble(const record& r) {
    switch (r.kind) {
        case record_kind::BAR_READ:
        case record_kind::BAR_WRITE:
            if (r.length != 1 && r.length != 2 && r.length != 4 &&
                r.length != 8)
                return "a BAR access of other than 1, 2, 4 or 8 bytes";
            return nullptr;
        case record_kind::DMA_READ:
        case record_kind::DMA_WRITE:
            if (r.length == 0 || r.length > RECORD_MAX_DATA)
                return "a DMA of no bytes, or more than a page";
            if (r.data_size != r.length && (r.kind == record_kind::DMA_WRITE ||
                                            r.status == record_status::OK))
                return "a DMA whose data have another length than it";
            return nullptr;
        case record_kind::MEMORY:
            if (r.data_size > RECORD_MAX_DATA)
                return "more memory than a page";
            return nullptr;
        default:
            return nullptr;
    }
}

}  // namespace

void kept_release::operator()(feed_record* r) const {
    if (!feed) {
        delete r;
        return;
    }
    feed->m_bytes -= sizeof(feed_record) + r->bytes.size();
    feed->m_unused.emplace_back(r);
}

kept replay_feed::next() {
    if (m_end)
        return kept(nullptr, kept_release{this});
    record one;
    if (!m_reader.next(one)) {
        m_end = true;
        return kept(nullptr, kept_release{this});
    }
    m_position++;
    m_time = one.time_ps;
    if (one.node >= m_reader.header().nodes)
        throw recording_error(
            m_reader.path() + ": record " + std::to_string(m_position) +
            " is of node " + std::to_string(one.node) + ", and there are " +
            std::to_string(m_reader.header().nodes) + "; record again");
    const char* wrong = trouble(one);
    if (wrong)
        throw recording_error(m_reader.path() + ": record " +
                              std::to_string(m_position) + ": " + wrong +
                              "; record again");
    std::unique_ptr<feed_record> r;
    if (m_unused.empty()) {
        r = std::make_unique<feed_record>();
    } else {
        r = std::move(m_unused.back());
        m_unused.pop_back();
    }
    static_cast<record&>(*r) = one;
    r->number = m_position;
    r->bytes.assign(one.data, one.data + one.data_size);
    r->data = r->bytes.data();
    m_bytes += sizeof(feed_record) + r->bytes.size();
    return kept(r.release(), kept_release{this});
}

std::string describe(const record& r) {
    return "node " + std::to_string(r.node) + ": " + record_text(r);
}

}  // namespace prawn
