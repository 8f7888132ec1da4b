// SPDX-License-Identifier: Apache-2.0
// A file that grows by whole records: whenever the process is killed, what is
// in the file ends with a complete record.

#ifndef PRAWN_TRACE_OUTPUT_FILE_H
#define PRAWN_TRACE_OUTPUT_FILE_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace prawn {

class output_file
{
public:
    // Replaces what is there. Throws std::runtime_error with one line if the
    // file cannot be made, or is neither a regular file nor a device.
    explicit output_file(const std::string& path);
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;
    ~output_file();

    // Where the next record is put together; end_record() completes it.
    std::string& buffer() { return m_buffer; }

    // Now and then brings the records so far into the file: when there are
    // many bytes, or when model time has gone on. A run that stands still must
    // call flush() to the same end.
    void end_record(std::uint64_t time_ps);

    // All complete records are in the file, as far as other processes see.
    void flush();

    // False after a write has failed (disk full): one line was printed, and
    // later records are dropped. The model goes on.
    bool ok() const { return m_fd >= 0; }
    const std::string& path() const { return m_path; }

private:
    static constexpr std::size_t MANY_BYTES = 65536;
    static constexpr std::uint64_t LONG_PS = 1'000'000'000;  // 1 ms

    std::string m_path;
    int m_fd = -1;
    std::string m_buffer;
    std::uint64_t m_flushed_ps = 0;
};

}  // namespace prawn

#endif
