// SPDX-License-Identifier: Apache-2.0
// The shared memory of a run, as the model makes it.

#ifndef PRAWN_QEMU_DEVICE_LOCKSTEP_SHARED_FILE_H
#define PRAWN_QEMU_DEVICE_LOCKSTEP_SHARED_FILE_H

#include <string>

#include "qemu-device/lockstep/channel.h"

namespace prawn {
namespace lockstep {

// Made anew; removed by the destructor. Throws std::system_error.
class shared_file
{
public:
    explicit shared_file(const std::string& path);
    ~shared_file();
    shared_file(const shared_file&) = delete;
    shared_file& operator=(const shared_file&) = delete;

    shared& get() { return *m_shared; }
    const std::string& path() const { return m_path; }

private:
    const std::string m_path;
    shared* m_shared = nullptr;
};

}  // namespace lockstep
}  // namespace prawn

#endif
