// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <zstd.h>

#include "record/record_codec.h"
#include "record/recording.h"
#include "record/recording_file.h"
#include "support/crc32c.h"
#include "trace/output_file.h"

namespace prawn {

namespace {

// Records are small and much alike: higher levels cost more than they save.
constexpr int LEVEL = 1;

struct free_context {
    void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
};

}  // namespace

struct recording_writer::impl {
    impl(const std::string& where, const recording_header& header) :
        path(where),
        nodes(header.nodes),
        file(std::make_unique<output_file>(where)),
        zstd(ZSTD_createCCtx()) {
        if (!zstd)
            throw std::runtime_error("recording " + path + ": no memory");
        std::string contents(FILE_MAGIC, FILE_MAGIC_SIZE);
        put_word(contents, header.format);
        contents += header_json(header);
        if (contents.size() > MAX_HEADER_BYTES)
            throw std::runtime_error("recording " + path +
                                     ": its configuration is too long");
        file->buffer() += our_frame(contents);
        file->flush();
    }

    void write(const record& r) {
        if (r.node >= nodes)
            throw std::invalid_argument("recording: no such node");
        const std::size_t before = raw.size();
        try {
            encode(raw, state, r);
        } catch (...) {
            raw.resize(before);
            throw;
        }
        counts[static_cast<std::size_t>(r.kind)]++;
        records++;
        if (raw.size() >= FRAME_BYTES)
            end_frame();
    }

    // What is in `raw` becomes a frame, and the file ends with it.
    void end_frame() {
        if (raw.empty() || !file)
            return;
        packed.resize(ZSTD_compressBound(raw.size()));
        const std::size_t size =
            ZSTD_compressCCtx(zstd.get(), packed.data(), packed.size(),
                              raw.data(), raw.size(), LEVEL);
        if (ZSTD_isError(size)) {
            // Only if there is no memory: as if the disk were full.
            std::fprintf(stderr,
                         "recording %s: %s: it ends here; free memory and run "
                         "again\n",
                         path.c_str(), ZSTD_getErrorName(size));
            file.reset();
            raw.clear();
            return;
        }
        std::string contents(DATA_MAGIC, PART_MAGIC_SIZE);
        put_word(contents, static_cast<std::uint32_t>(size));
        put_word(contents, static_cast<std::uint32_t>(raw.size()));
        put_word(contents, crc32c(packed.data(), size));
        put_number(contents, framed);
        encode(contents, frame_state);
        file->buffer() += our_frame(contents);
        file->buffer().append(packed.data(), size);
        file->flush();
        digest = crc32c(raw.data(), raw.size(), digest);
        bytes += raw.size();
        framed = records;
        frame_state = state;
        raw.clear();
    }

    void finish(std::uint64_t time_ps) {
        end_frame();
        if (!file)
            return;
        std::string contents(TAIL_MAGIC, PART_MAGIC_SIZE);
        put_word(contents, digest);
        put_number(contents, time_ps);
        put_number(contents, records);
        put_number(contents, bytes);
        put_number(contents, RECORD_KINDS);
        for (const std::uint64_t n : counts)
            put_number(contents, n);
        file->buffer() += our_frame(contents);
        file->flush();
        failed = !file->ok();
        file.reset();
    }

    const std::string path;
    const unsigned nodes;
    std::unique_ptr<output_file> file;  // null: nothing more is written
    std::unique_ptr<ZSTD_CCtx, free_context> zstd;
    record_state state;        // after the last record
    record_state frame_state;  // before the first one in `raw`
    std::string raw;
    std::string packed;
    std::array<std::uint64_t, RECORD_KINDS> counts{};
    std::uint64_t records = 0;
    std::uint64_t framed = 0;  // records in frames
    std::uint64_t bytes = 0;
    std::uint32_t digest = 0;
    bool failed = false;
};

recording_writer::recording_writer(const std::string& path,
                                   const recording_header& header) :
    m(std::make_unique<impl>(path, header)) {}

recording_writer::~recording_writer() {
    m->end_frame();
}

void recording_writer::write(const record& r) {
    if (m->file)
        m->write(r);
}

void recording_writer::flush() {
    m->end_frame();
}

void recording_writer::finish(std::uint64_t time_ps) {
    m->finish(time_ps);
}

bool recording_writer::ok() const {
    return m->file ? m->file->ok() : !m->failed;
}

std::uint64_t recording_writer::records() const {
    return m->records;
}

const std::string& recording_writer::path() const {
    return m->path;
}

}  // namespace prawn
