// SPDX-License-Identifier: Apache-2.0
// A path that nobody else uses; the file is gone when the object is.

#ifndef PRAWN_UNIT_TEMP_FILE_H
#define PRAWN_UNIT_TEMP_FILE_H

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace prawn {

class temp_file
{
public:
    temp_file() : m_path(testing::TempDir() + "prawn_unit_XXXXXX") {
        const int fd = ::mkstemp(m_path.data());
        EXPECT_GE(fd, 0) << m_path;
        ::close(fd);
    }
    temp_file(const temp_file&) = delete;
    temp_file& operator=(const temp_file&) = delete;
    ~temp_file() { ::unlink(m_path.c_str()); }

    const std::string& path() const { return m_path; }

    std::string content() const {
        std::ifstream in(m_path, std::ios::binary);
        std::stringstream text;
        text << in.rdbuf();
        return text.str();
    }
    void replace(const std::string& content) const {
        std::ofstream out(m_path, std::ios::binary | std::ios::trunc);
        out << content;
    }

private:
    std::string m_path;
};

}  // namespace prawn

#endif
