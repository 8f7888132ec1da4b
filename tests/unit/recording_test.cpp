// SPDX-License-Identifier: Apache-2.0
// The file: what is written is read, and whatever else is in it does no harm.
#include "record/recording.h"

#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>
#include <zstd.h>

#include "record/record_codec.h"
#include "record/recording_file.h"
#include "recording_samples.h"
#include "support/crc32c.h"
#include "temp_file.h"

namespace prawn {
namespace {

using ending = recording_reader::ending;

// A small recording: every kind at least once, in several frames.
std::vector<kept_record> write_small(const std::string& path) {
    std::vector<kept_record> all;
    recording_writer writer(path, sample_header());
    sample_records samples(7);
    for (std::size_t i = 0; i < 2 * (RECORD_KINDS - 1); i++) {
        record r =
            samples.of(static_cast<record_kind>(1 + i % (RECORD_KINDS - 1)));
        // Short, so that a test can go through all bytes.
        if (r.kind == record_kind::MEMORY)
            r.data_size = std::min(r.data_size, 40U);
        if (r.dma() && r.data_size) {
            r.length = std::min<std::uint64_t>(r.length, 40);
            r.data_size = static_cast<std::uint32_t>(r.length);
        }
        writer.write(r);
        all.emplace_back(r);
        if (i % 8 == 7)
            writer.flush();
    }
    writer.finish(all.back().get().time_ps + 5);
    EXPECT_TRUE(writer.ok());
    EXPECT_EQ(writer.records(), all.size());
    return all;
}

std::string refusal(const std::string& path) {
    try {
        const recording_reader reader(path);
    } catch (const recording_error& e) {
        const std::string line = e.what();
        EXPECT_EQ(line.find('\n'), std::string::npos) << line;
        EXPECT_EQ(line.rfind(path + ": ", 0), 0u) << line;
        return line.substr(path.size() + 2);
    }
    return "accepted";
}

std::string refusal_of(const std::string& content) {
    const temp_file file;
    file.replace(content);
    return refusal(file.path());
}

TEST(recording, every_kind_comes_back) {
    const temp_file file;
    const auto all = write_small(file.path());
    const read_back back(file.path());
    ASSERT_EQ(back.records.size(), all.size());
    for (std::size_t i = 0; i < all.size(); i++)
        EXPECT_EQ(back.records[i].get(), all[i].get())
            << record_text(all[i].get()) << "\n"
            << record_text(back.records[i].get());
    EXPECT_EQ(back.reader.header(), sample_header());
    EXPECT_EQ(back.reader.end(), ending::COMPLETE);
    EXPECT_EQ(back.reader.trouble(), "");
    ASSERT_TRUE(back.reader.trailer());
    const recording_trailer& t = *back.reader.trailer();
    EXPECT_EQ(t.time_ps, all.back().get().time_ps + 5);
    EXPECT_EQ(t.records, all.size());
    for (std::size_t k = 1; k < RECORD_KINDS; k++)
        EXPECT_EQ(t.by_kind[k], 2u) << k;
}

TEST(recording, names_of_kinds) {
    for (std::size_t k = 1; k < RECORD_KINDS; k++) {
        const auto kind = static_cast<record_kind>(k);
        ASSERT_NE(name(kind), nullptr);
        EXPECT_EQ(record_kind_of(name(kind)), kind);
    }
    EXPECT_EQ(record_kind_of("none"), record_kind::NONE);
    EXPECT_EQ(record_kind_of("nonsense"), record_kind::NONE);
    EXPECT_EQ(name(static_cast<record_kind>(RECORD_KINDS)), nullptr);
}

TEST(recording, random_records_come_back) {
    for (const unsigned nodes : {1U, 3U, RECORD_MAX_NODES}) {
        const temp_file file;
        {
            recording_writer writer(file.path(), sample_header(nodes));
            sample_records samples(nodes, nodes);
            for (int i = 0; i < 4000; i++)
                writer.write(samples.next());
            writer.finish(~std::uint64_t{0});
        }
        recording_reader reader(file.path());
        sample_records samples(nodes, nodes);
        record r;
        int differ = 0;
        while (reader.next(r))
            differ += r != samples.next();
        EXPECT_EQ(differ, 0);
        EXPECT_EQ(reader.records(), 4000u);
        EXPECT_TRUE(reader.trailer()) << reader.trouble();
    }
}

// When it is flushed is a matter of wall time: it must not show.
TEST(recording, flushes_change_no_byte_of_the_records) {
    const temp_file a, b;
    for (const temp_file* file : {&a, &b}) {
        recording_writer writer(file->path(), sample_header());
        sample_records samples(5);
        for (int i = 0; i < 500; i++) {
            writer.write(samples.next());
            if (file == &b)
                writer.flush();
        }
        writer.finish(~std::uint64_t{0});
    }
    const read_back of_a(a.path()), of_b(b.path());
    ASSERT_TRUE(of_a.reader.trailer() && of_b.reader.trailer());
    EXPECT_EQ(of_a.reader.trailer()->digest, of_b.reader.trailer()->digest);
    EXPECT_EQ(of_a.reader.trailer()->bytes, of_b.reader.trailer()->bytes);
    EXPECT_NE(a.content().size(), b.content().size());
}

// Any tool for .zst files gets the coded records.
TEST(recording, is_a_zst_file) {
    const temp_file file;
    write_small(file.path());
    const read_back back(file.path());
    const std::string command = "zstd -q -dc <" + file.path();
    FILE* pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::uint32_t crc = 0;
    std::uint64_t bytes = 0;
    char data[4096];
    while (const std::size_t n = std::fread(data, 1, sizeof data, pipe)) {
        crc = crc32c(data, n, crc);
        bytes += n;
    }
    EXPECT_EQ(::pclose(pipe), 0);
    EXPECT_EQ(bytes, back.reader.trailer()->bytes);
    EXPECT_EQ(crc, back.reader.trailer()->digest);
}

TEST(recording, what_a_killed_run_leaves) {
    const temp_file file;
    {
        recording_writer writer(file.path(), sample_header());
        sample_records samples(3);
        for (int i = 0; i < 10; i++)
            writer.write(samples.next());
        writer.flush();
        const read_back back(file.path());  // while it goes on
        EXPECT_EQ(back.records.size(), 10u);
        EXPECT_EQ(back.reader.end(), ending::TRUNCATED);
        EXPECT_NE(back.reader.trouble().find("after record 10"),
                  std::string::npos)
            << back.reader.trouble();
        writer.write(samples.next());
    }
    const read_back back(file.path());
    EXPECT_EQ(back.records.size(), 11u);
    EXPECT_EQ(back.reader.end(), ending::TRUNCATED);
    EXPECT_EQ(back.reader.trailer(), nullptr);
}

TEST(recording, cut_at_every_byte) {
    const temp_file whole, cut;
    const auto all = write_small(whole.path());
    const std::string content = whole.content();
    std::size_t refused = 0, most = 0;
    for (std::size_t size = 0; size < content.size(); size++) {
        cut.replace(content.substr(0, size));
        try {
            const read_back back(cut.path());
            EXPECT_TRUE(back.begins(all)) << size;
            EXPECT_EQ(back.reader.end(), ending::TRUNCATED) << size;
            EXPECT_EQ(back.reader.trouble().find('\n'), std::string::npos);
            EXPECT_NE(back.reader.trouble(), "");
            EXPECT_GE(back.records.size(), most);
            most = std::max(most, back.records.size());
        } catch (const recording_error&) {
            EXPECT_EQ(refused, size);  // only within the header
            refused++;
            EXPECT_NE(refusal(cut.path()), "accepted");
        }
    }
    EXPECT_GT(refused, FILE_MAGIC_SIZE);
    EXPECT_LT(refused, content.size() / 2);
    EXPECT_EQ(most, all.size());
}

TEST(recording, every_byte_damaged) {
    const temp_file whole, damaged;
    const auto all = write_small(whole.path());
    const std::string content = whole.content();
    for (std::size_t at = 0; at < content.size(); at++) {
        std::string other = content;
        other[at] = static_cast<char>(other[at] ^ (at % 2 ? 0x01 : 0xff));
        damaged.replace(other);
        try {
            const read_back back(damaged.path());
            EXPECT_TRUE(back.begins(all)) << at;
            EXPECT_NE(back.reader.end(), ending::COMPLETE) << at;
            EXPECT_EQ(back.reader.trailer(), nullptr);
            EXPECT_NE(back.reader.trouble(), "");
            EXPECT_EQ(back.reader.trouble().find('\n'), std::string::npos);
        } catch (const recording_error&) {
            EXPECT_NE(refusal(damaged.path()), "accepted");
        }
    }
}

TEST(recording, pieces_that_do_not_belong_together) {
    const temp_file whole, other;
    const auto all = write_small(whole.path());
    const std::string content = whole.content();
    // Where the frames of ours begin.
    std::vector<std::size_t> at;
    for (std::size_t i = content.find(DATA_MAGIC); i != std::string::npos;
         i = content.find(DATA_MAGIC, i + 1))
        at.push_back(i - OUR_FRAME_HEAD);
    ASSERT_GE(at.size(), 4u);
    // One is missing; one comes twice; something follows the end.
    for (const std::string& spoilt :
         {content.substr(0, at[1]) + content.substr(at[2]),
          content.substr(0, at[2]) + content.substr(at[1]), content + "x",
          content + content}) {
        other.replace(spoilt);
        const read_back back(other.path());
        EXPECT_TRUE(back.begins(all));
        EXPECT_EQ(back.reader.end(), ending::DAMAGED);
        EXPECT_NE(back.reader.trouble().find("damaged in the frame at byte"),
                  std::string::npos)
            << back.reader.trouble();
    }
}

TEST(recording, what_is_no_recording) {
    EXPECT_EQ(refusal("/no/such/file").find("No such file"), 0u);
    EXPECT_EQ(refusal("/tmp").find("not a regular file"), 0u);
    EXPECT_EQ(refusal("/dev/zero").find("not a regular file"), 0u);
    EXPECT_EQ(refusal_of("").find("empty"), 0u);
    EXPECT_EQ(refusal_of("time_ps,node\n").find("not a recording"), 0u);
    EXPECT_EQ(refusal_of(std::string(100000, '\0')).find("not a recording"),
              0u);
    // A .zst file of somebody else's, and a skippable frame.
    EXPECT_EQ(refusal_of(std::string("\x28\xb5\x2f\xfd and more of it", 20))
                  .find("not a recording"),
              0u);
    EXPECT_EQ(refusal_of(our_frame("something quite different"))
                  .find("not a recording"),
              0u);
}

// A frame as a version of ours would write it.
std::string begin_file(std::uint32_t format, const std::string& rest) {
    std::string contents(FILE_MAGIC);
    put_word(contents, format);
    return our_frame(contents + rest);
}

TEST(recording, other_versions_and_headers) {
    EXPECT_EQ(refusal_of(begin_file(2, "whatever it has"))
                  .find("is of format 2, this version reads format 1"),
              0u);
    EXPECT_EQ(refusal_of(begin_file(0, "")).find("is of format 0"), 0u);
    const std::string good = header_json(sample_header());
    EXPECT_EQ(refusal_of(begin_file(1, good)), "accepted");
    for (const std::string& bad :
         {std::string(), std::string("{"), std::string("[]"),
          std::string("{\"prawn\": 1}"), std::string(5000, '['),
          good.substr(0, good.size() - 3)})
        EXPECT_EQ(refusal_of(begin_file(1, bad)).find("its header is damaged"),
                  0u)
            << refusal_of(begin_file(1, bad));
    for (const unsigned nodes : {0U, 17U, 4000000000U})
        EXPECT_EQ(refusal_of(begin_file(1, header_json(sample_header(nodes))))
                      .find("its header is damaged"),
                  0u);
    // A length that would be gigabytes.
    std::string huge = begin_file(1, good);
    huge[7] = '\x7f';
    EXPECT_EQ(refusal_of(huge).find("its header is damaged (a length"), 0u);
}

// Frames with good checksums and impossible contents.
std::string frame_of(const std::string& raw, std::uint32_t claimed,
                     std::uint64_t before = 0) {
    std::string packed(ZSTD_compressBound(raw.size()), '\0');
    packed.resize(
        ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 1));
    std::string contents(DATA_MAGIC);
    put_word(contents, static_cast<std::uint32_t>(packed.size()));
    put_word(contents, claimed);
    put_word(contents, crc32c(packed.data(), packed.size()));
    put_number(contents, before);
    encode(contents, record_state());
    return our_frame(contents) + packed;
}

TEST(recording, forged_frames) {
    const std::string head = begin_file(1, header_json(sample_header()));
    std::string good;
    record_state state;
    record r;
    r.kind = record_kind::RESET;
    encode(good, state, r);
    const auto size = [](const std::string& s) {
        return static_cast<std::uint32_t>(s.size());
    };
    const std::string bomb(std::size_t{8} << 20, '\0');
    std::string no_kind = good, far_node = good;
    no_kind[0] = '\x1f';
    far_node = std::string("\x23\x0f\0", 3);  // of node 15; there are 3
    const struct {
        std::string content;
        std::size_t records;
    } cases[] = {
        {frame_of(good, size(good) + 1), 0},
        {frame_of(good + good, size(good)), 0},
        {frame_of(bomb, size(good)), 0},
        {frame_of(bomb, MAX_FRAME_BYTES), 0},
        {frame_of(bomb, size(bomb)), 0},
        {frame_of(good, 0), 0},
        {frame_of(good, size(good), 1), 0},
        {frame_of(no_kind, size(no_kind)), 0},
        {frame_of(far_node, size(far_node)), 0},
        {frame_of(good + no_kind, size(good + no_kind)), 1},
        {frame_of(good + good.substr(0, 1), size(good) + 1), 1},
        {our_frame("WHAT"), 0},
        {our_frame("TAIL"), 0},
        {our_frame("DATA"), 0},
        {our_frame(std::string(MAX_PART_BYTES + 1, 'x')), 0},
    };
    for (const auto& c : cases) {
        const temp_file file;
        file.replace(head + c.content);
        const read_back back(file.path());
        EXPECT_EQ(back.reader.end(), ending::DAMAGED);
        EXPECT_EQ(back.records.size(), c.records);
        EXPECT_EQ(back.reader.trouble().find('\n'), std::string::npos);
    }
}

TEST(recording, writer_refuses_what_is_no_record) {
    const temp_file file;
    recording_writer writer(file.path(), sample_header());
    record good;
    good.kind = record_kind::BAR_READ;
    good.time_ps = 100;
    good.length = 4;
    good.order = 1;
    writer.write(good);
    const std::function<void(record&)> spoil[] = {
        [](record& r) { r.time_ps = 99; },
        [](record& r) { r.node = 3; },
        [](record& r) { r.node = 0xffff; },
        [](record& r) { r.kind = record_kind::NONE; },
        [](record& r) { r.kind = static_cast<record_kind>(31); },
        [](record& r) { r.length = 3; },
        [](record& r) { r.length = 0; },
        [](record& r) { r.bar = 8; },
        [](record& r) {
            r.kind = record_kind::BAR_WRITE;
            r.length = 1;
            r.value = 256;
        },
        [](record& r) {
            r.kind = record_kind::DMA_READ;
            r.length = 4;  // without data
        },
        [](record& r) {
            r.kind = record_kind::DMA_READ;
            r.status = record_status::OTHER_ERROR;
            r.length = 5000;
        },
        [](record& r) {
            r.kind = record_kind::DMA_READ;
            r.status = record_status::OTHER_ERROR;
            r.late = true;
            r.began_ps = 101;
        },
        [](record& r) { r.kind = record_kind::MEMORY; },
        [](record& r) {
            r.kind = record_kind::MSIX;
            r.nested = true;
        },
    };
    for (const auto& f : spoil) {
        record r = good;
        f(r);
        EXPECT_THROW(writer.write(r), std::invalid_argument);
    }
    writer.write(good);
    writer.finish(100);
    const read_back back(file.path());
    EXPECT_EQ(back.records.size(), 2u);
    EXPECT_TRUE(back.reader.trailer()) << back.reader.trouble();
}

TEST(recording, where_it_cannot_be_written) {
    for (const char* path : {"/no/such/directory/x", "/tmp", "/dev/null/x"})
        EXPECT_THROW(recording_writer(path, sample_header()),
                     std::runtime_error);
    testing::internal::CaptureStderr();
    {
        recording_writer full("/dev/full", sample_header());
        EXPECT_FALSE(full.ok());
        sample_records samples(1);
        for (int i = 0; i < 5000; i++)
            full.write(samples.next());
        full.finish(~std::uint64_t{0});
        EXPECT_FALSE(full.ok());
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("/dev/full: No space left"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// Whatever the length of a recording, reading and writing take the same memory.
TEST(recording, memory_is_bounded) {
    const temp_file file;
    constexpr int RECORDS = 40000;  // some 160 MB
    std::string noise(RECORD_MAX_DATA, '\0');
    std::uint32_t seed = 1;
    const auto held = [] { return ::mallinfo2().uordblks; };
    const std::size_t before = held();
    std::size_t most = 0;
    {
        recording_writer writer(file.path(), sample_header());
        for (int i = 0; i < RECORDS; i++) {
            for (std::size_t k = 0; k < noise.size(); k += 16)
                noise[k] = static_cast<char>(
                    (seed = seed * 1664525 + 1013904223) >> 24);
            record r;
            r.kind = record_kind::MEMORY;
            r.data = reinterpret_cast<const std::uint8_t*>(noise.data());
            r.data_size = RECORD_MAX_DATA;
            writer.write(r);
            most = std::max<std::size_t>(most, held());
        }
        writer.finish(0);
    }
    recording_reader reader(file.path());
    record r;
    while (reader.next(r))
        most = std::max<std::size_t>(most, held());
    EXPECT_TRUE(reader.trailer()) << reader.trouble();
    EXPECT_EQ(reader.records(), std::uint64_t{RECORDS});
    EXPECT_LT(most, before + (std::size_t{8} << 20));
}

}  // namespace
}  // namespace prawn
