// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <zstd.h>

#include "record/record_codec.h"
#include "record/recording.h"
#include "record/recording_file.h"
#include "support/crc32c.h"

namespace prawn {

namespace {

struct free_context {
    void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
};

// Front to back; knows how far it is.
class input_file
{
public:
    explicit input_file(const std::string& path) {
        m_fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat st = {};
        if (m_fd < 0 || ::fstat(m_fd, &st) != 0) {
            const int error = errno;
            close();
            throw recording_error(path + ": " + std::strerror(error) +
                                  ": name a file that --record has written");
        }
        if (!S_ISREG(st.st_mode)) {
            close();
            throw recording_error(path +
                                  ": not a regular file: name a file that "
                                  "--record has written");
        }
    }
    input_file(const input_file&) = delete;
    input_file& operator=(const input_file&) = delete;
    ~input_file() { close(); }

    // Less only at the end of the file, or if it cannot be read on.
    std::size_t read(char* to, std::size_t size) {
        std::size_t got = 0;
        while (got < size) {
            const ssize_t n = ::read(m_fd, to + got, size - got);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                m_error = errno;
            if (n <= 0)
                break;
            got += static_cast<std::size_t>(n);
        }
        m_at += got;
        return got;
    }
    std::uint64_t at() const { return m_at; }
    int error() const { return m_error; }

private:
    void close() {
        if (m_fd >= 0)
            ::close(m_fd);
        m_fd = -1;
    }
    int m_fd = -1;
    std::uint64_t m_at = 0;
    int m_error = 0;
};

byte_input bytes_of(const std::string& text, std::size_t from) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(text.data());
    return {begin + from, begin + text.size()};
}

}  // namespace

struct recording_reader::impl {
    explicit impl(const std::string& where) :
        path(where), file(where), zstd(ZSTD_createDCtx()) {
        if (!zstd)
            throw recording_error(path + ": no memory");
        read_header();
    }

    void read_header() {
        constexpr std::size_t HEAD = OUR_FRAME_HEAD + FILE_MAGIC_SIZE + 4;
        std::string head(HEAD, '\0');
        head.resize(file.read(head.data(), HEAD));
        if (file.error())
            throw recording_error(path + ": " + std::strerror(file.error()) +
                                  ": name a file that --record has written");
        if (head.empty())
            throw recording_error(path +
                                  ": empty: nothing has been recorded in it");
        byte_input in = bytes_of(head, 0);
        std::uint32_t magic = 0, size = 0;
        const bool ours = in.word(magic) && magic == OUR_FRAME &&
                          in.word(size) && in.left() >= FILE_MAGIC_SIZE &&
                          std::memcmp(in.at, FILE_MAGIC, FILE_MAGIC_SIZE) == 0;
        if (!ours)
            throw recording_error(path +
                                  ": not a recording of Prawn: name a file "
                                  "that --record has written");
        in.at += FILE_MAGIC_SIZE;
        if (!in.word(header.format))
            throw recording_error(path +
                                  ": ends within its header: record again");
        if (header.format != RECORDING_FORMAT)
            throw recording_error(
                path + ": is of format " + std::to_string(header.format) +
                ", this version reads format " +
                std::to_string(RECORDING_FORMAT) +
                ": use the version of Prawn that made it, or record again");
        if (size < FILE_MAGIC_SIZE + 4 + OUR_FRAME_CRC ||
            size > MAX_HEADER_BYTES + OUR_FRAME_CRC)
            throw recording_error(path +
                                  ": its header is damaged (a length "
                                  "of " +
                                  std::to_string(size) + "): record again");
        std::string contents = head.substr(OUR_FRAME_HEAD);
        const std::size_t have = contents.size();
        contents.resize(size);
        if (file.read(contents.data() + have, size - have) < size - have)
            throw recording_error(path +
                                  ": ends within its header: record "
                                  "again");
        if (!check(contents))
            throw recording_error(path +
                                  ": its header is damaged (checksum)"
                                  ": record again");
        const std::uint32_t format = header.format;
        try {
            header = header_of_json(contents.substr(FILE_MAGIC_SIZE + 4));
        } catch (const recording_error& e) {
            throw recording_error(path + ": " + e.what() + ": record again");
        }
        header.format = format;
    }

    // Takes the checksum off; false if it is another one.
    static bool check(std::string& contents) {
        const std::size_t size = contents.size() - OUR_FRAME_CRC;
        byte_input in = bytes_of(contents, size);
        std::uint32_t crc = 0;
        in.word(crc);
        contents.resize(size);
        return crc32c(contents.data(), size) == crc;
    }

    bool next(record& r) {
        while (rest.left() == 0)
            if (how != ending::OPEN || !next_frame())
                return false;
        if (decode(rest, state, r) && r.node < header.nodes) {
            records++;
            counts[static_cast<std::size_t>(r.kind)]++;
            return true;
        }
        rest = byte_input();
        damaged("a record that is none");
        return false;
    }

    bool truncated() {
        if (file.error())
            return damaged(std::strerror(file.error()));
        how = ending::TRUNCATED;
        trouble = path + ": ends at byte " + std::to_string(file.at()) +
                  " without its end, after record " + std::to_string(records) +
                  ": the run was killed, or still goes on";
        return false;
    }
    bool damaged(const char* what) {
        how = ending::DAMAGED;
        trouble = path + ": damaged in the frame at byte " +
                  std::to_string(frame_at) + " (" + what + "): only the " +
                  std::to_string(records) +
                  " records before it can be read; record again";
        return false;
    }

    // False: there is none; how and trouble are set.
    bool next_frame() {
        frame_at = file.at();
        std::string contents;
        contents.resize(OUR_FRAME_HEAD);
        if (file.read(contents.data(), OUR_FRAME_HEAD) < OUR_FRAME_HEAD)
            return truncated();
        byte_input head = bytes_of(contents, 0);
        std::uint32_t magic = 0, size = 0;
        if (!head.word(magic) || magic != OUR_FRAME || !head.word(size))
            return damaged("not the beginning of a frame");
        if (size < PART_MAGIC_SIZE + OUR_FRAME_CRC || size > MAX_PART_BYTES)
            return damaged("a length that no frame has");
        contents.resize(size);
        if (file.read(contents.data(), size) < size)
            return truncated();
        if (!check(contents))
            return damaged("checksum of its head");
        if (contents.compare(0, PART_MAGIC_SIZE, DATA_MAGIC) == 0)
            return data_frame(bytes_of(contents, PART_MAGIC_SIZE));
        if (contents.compare(0, PART_MAGIC_SIZE, TAIL_MAGIC) == 0)
            return tail_frame(bytes_of(contents, PART_MAGIC_SIZE));
        return damaged("a frame of no known kind");
    }

    bool data_frame(byte_input head) {
        std::uint32_t stored = 0, size = 0, crc = 0;
        std::uint64_t before = 0;
        record_state begin;
        if (!head.word(stored) || !head.word(size) || !head.word(crc) ||
            !head.number(before) || !decode(head, begin) || head.left() != 0)
            return damaged("its head");
        if (size == 0 || size > MAX_FRAME_BYTES || stored == 0 ||
            stored > ZSTD_compressBound(MAX_FRAME_BYTES))
            return damaged("a size that no frame has");
        if (before != records || !(begin == state))
            return damaged("what is before it is missing");
        packed.resize(stored);
        if (file.read(packed.data(), stored) < stored)
            return truncated();
        if (crc32c(packed.data(), stored) != crc)
            return damaged("checksum");
        raw.resize(size);
        const std::size_t got = ZSTD_decompressDCtx(
            zstd.get(), raw.data(), raw.size(), packed.data(), stored);
        if (ZSTD_isError(got) || got != size)
            return damaged("its compression");
        digest = crc32c(raw.data(), size, digest);
        bytes += size;
        rest = bytes_of(raw, 0);
        return true;
    }

    bool tail_frame(byte_input head) {
        std::uint64_t kinds = 0;
        if (!head.word(tail.digest) || !head.number(tail.time_ps) ||
            !head.number(tail.records) || !head.number(tail.bytes) ||
            !head.number(kinds) || kinds != RECORD_KINDS)
            return damaged("the trailer");
        for (std::uint64_t& n : tail.by_kind)
            if (!head.number(n))
                return damaged("the trailer");
        if (head.left() != 0)
            return damaged("the trailer");
        if (tail.records != records || tail.bytes != bytes ||
            tail.digest != digest || tail.by_kind != counts ||
            tail.time_ps < state.time_ps)
            return damaged("the trailer tells of another recording");
        char more = 0;
        if (file.read(&more, 1) != 0)
            return damaged("something follows the trailer");
        if (file.error())
            return damaged(std::strerror(file.error()));
        how = ending::COMPLETE;
        return false;
    }

    const std::string path;
    input_file file;
    std::unique_ptr<ZSTD_DCtx, free_context> zstd;
    recording_header header;
    recording_trailer tail;
    ending how = ending::OPEN;
    std::string trouble;
    std::uint64_t frame_at = 0;
    std::string packed;
    std::string raw;
    byte_input rest;  // of raw
    record_state state;
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
    std::uint32_t digest = 0;
    std::array<std::uint64_t, RECORD_KINDS> counts{};
};

recording_reader::recording_reader(const std::string& path) :
    m(std::make_unique<impl>(path)) {}

recording_reader::~recording_reader() = default;

const recording_header& recording_reader::header() const {
    return m->header;
}

bool recording_reader::next(record& r) {
    return m->next(r);
}

recording_reader::ending recording_reader::end() const {
    return m->how;
}

const std::string& recording_reader::trouble() const {
    return m->trouble;
}

const recording_trailer* recording_reader::trailer() const {
    return m->how == ending::COMPLETE ? &m->tail : nullptr;
}

std::uint64_t recording_reader::records() const {
    return m->records;
}

const std::string& recording_reader::path() const {
    return m->path;
}

}  // namespace prawn
