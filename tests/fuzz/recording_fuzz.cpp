// SPDX-License-Identifier: Apache-2.0
// Recordings that nobody has written: spoilt files, and frames that have right
// checksums and nonsense in them. The reader survives, says so in one line,
// and what it takes for a record can be written and read again.
//
// PRAWN_FUZZ_SECONDS (default 10) and PRAWN_FUZZ_SEED (default 1); or files to
// be read, as arguments.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <zstd.h>

#include "record/record_codec.h"
#include "record/recording_file.h"
#include "support/crc32c.h"
#include "tests/unit/recording_samples.h"

namespace {

using namespace prawn;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "recording_fuzz: %s\n", what.c_str());
    std::abort();
}

// A file in memory.
class memory_file
{
public:
    explicit memory_file(const char* name) :
        m_fd(::memfd_create(name, MFD_CLOEXEC)),
        m_path("/proc/self/fd/" + std::to_string(m_fd)) {
        if (m_fd < 0)
            fail("no memory file");
    }
    memory_file(const memory_file&) = delete;
    memory_file& operator=(const memory_file&) = delete;
    ~memory_file() { ::close(m_fd); }
    const std::string& path() const { return m_path; }
    void replace(const std::string& content) const {
        if (::ftruncate(m_fd, 0) != 0 ||
            ::pwrite(m_fd, content.data(), content.size(), 0) !=
                static_cast<ssize_t>(content.size()))
            fail("cannot write");
    }
    std::string content() const {
        std::string all(static_cast<std::size_t>(::lseek(m_fd, 0, SEEK_END)),
                        '\0');
        if (::pread(m_fd, all.data(), all.size(), 0) !=
            static_cast<ssize_t>(all.size()))
            fail("cannot read");
        return all;
    }

private:
    int m_fd;
    std::string m_path;
};

// So that a run says whether it got anywhere.
struct {
    unsigned long long refused = 0, truncated = 0, damaged = 0, complete = 0,
                       records = 0;
} seen;

void check_line(const std::string& line) {
    if (line.empty() || line.find('\n') != std::string::npos)
        fail("not one line: \"" + line + "\"");
}

// Reads all there is. What comes out has to be in order, and writable.
void read(const std::string& path, const memory_file& again) {
    std::vector<kept_record> all;
    recording_header header;
    try {
        recording_reader reader(path);
        header = reader.header();
        record r;
        while (reader.next(r)) {
            if (!all.empty() && r.time_ps < all.back().get().time_ps)
                fail("time falls");
            all.emplace_back(r);
        }
        if (reader.next(r) || reader.records() != all.size())
            fail("goes on after its end");
        if (!reader.trailer())
            check_line(reader.trouble());
        seen.records += all.size();
        reader.trailer()                                      ? seen.complete++
        : reader.end() == recording_reader::ending::TRUNCATED ? seen.truncated++
                                                              : seen.damaged++;
        record_text(record());
        for (const kept_record& k : all)
            record_text(k.get());
    } catch (const recording_error& e) {
        check_line(e.what());
        seen.refused++;
        return;
    }
    {
        recording_writer writer(again.path(), header);
        for (const kept_record& k : all)
            writer.write(k.get());
        writer.finish(~std::uint64_t{0});
    }
    const read_back back(again.path());
    if (!back.reader.trailer() || back.records.size() != all.size() ||
        !back.begins(all))
        fail("what was read is another record when it is written");
}

class mutator
{
public:
    explicit mutator(std::uint64_t seed) : m_random(seed) {
        const memory_file file("corpus");
        sample_records samples(1);
        recording_writer writer(file.path(), sample_header());
        for (int i = 0; i < 60; i++) {
            const record r = samples.next();
            writer.write(r);
            encode(m_raw, m_state, r);
            if (i % 20 == 19)
                writer.flush();
        }
        writer.finish(~std::uint64_t{0});
        m_whole = file.content();
    }

    std::string next() {
        if (any(2) == 0)
            return spoilt(m_whole);
        // Nonsense behind right checksums.
        std::string contents(FILE_MAGIC);
        put_word(contents, RECORDING_FORMAT);
        const std::string json = header_json(sample_header());
        contents += any(4) ? json : spoilt(json);
        std::string file = our_frame(contents);
        std::string raw = spoilt(m_raw);
        raw.resize(std::min(raw.size(), MAX_FRAME_BYTES));
        std::string packed(ZSTD_compressBound(raw.size()), '\0');
        packed.resize(ZSTD_compress(packed.data(), packed.size(), raw.data(),
                                    raw.size(), 1));
        if (any(8) == 0)
            packed = spoilt(packed);
        contents = DATA_MAGIC;
        put_word(contents, static_cast<std::uint32_t>(packed.size()));
        put_word(contents, static_cast<std::uint32_t>(raw.size()));
        put_word(contents, crc32c(packed.data(), packed.size()));
        put_number(contents, 0);
        encode(contents, record_state());
        if (any(8) == 0)
            contents = spoilt(contents);
        return file + our_frame(contents) + packed;
    }

private:
    std::size_t any(std::size_t n) {
        return static_cast<std::size_t>(m_random()) % n;
    }
    std::string spoilt(std::string s) {
        for (std::size_t n = 1 + any(4); n > 0 && !s.empty(); n--) {
            const std::size_t at = any(s.size());
            switch (any(6)) {
                case 0:
                    s[at] = static_cast<char>(s[at] ^ 1 << any(8));
                    break;
                case 1:
                    s[at] = "\x00\x01\x7f\x80\xff"[any(5)];
                    break;
                case 2:
                    s.erase(at, any(9));
                    break;
                case 3:
                    s.insert(at, s, any(s.size()), any(64));
                    break;
                case 4:
                    s.resize(at);
                    break;
                default:
                    s.insert(at, any(12), static_cast<char>(any(256)));
                    break;
            }
        }
        return s;
    }

    std::mt19937_64 m_random;
    std::string m_whole;
    std::string m_raw;
    record_state m_state;
};

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

int sc_main(int argc, char** argv) {
    const memory_file again("again");
    for (int i = 1; i < argc; i++)
        read(argv[i], again);
    if (argc > 1)
        return 0;
    const std::uint64_t seed = from_environment("PRAWN_FUZZ_SEED", 1);
    const std::chrono::seconds budget(
        from_environment("PRAWN_FUZZ_SECONDS", 10));
    // First, so that a run that is aborted can be repeated.
    std::printf("recording_fuzz: seed %llu\n",
                static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    mutator inputs(seed);
    const memory_file file("input");
    const auto end = std::chrono::steady_clock::now() + budget;
    std::uint64_t runs = 0;
    for (; std::chrono::steady_clock::now() < end; runs++) {
        file.replace(inputs.next());
        read(file.path(), again);
    }
    std::printf(
        "recording_fuzz: %llu inputs: %llu refused, %llu truncated, %llu "
        "damaged, %llu complete; %llu records\n",
        static_cast<unsigned long long>(runs), seen.refused, seen.truncated,
        seen.damaged, seen.complete, seen.records);
    // Ways to end that a second's inputs have all come to.
    if (!seen.refused || !seen.truncated || !seen.damaged || !seen.records)
        fail("an outcome was never reached: run longer");
    return 0;
}
