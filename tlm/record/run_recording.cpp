// SPDX-License-Identifier: Apache-2.0
#include "record/run_recording.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "support/crc32c.h"
#include "support/events.h"

namespace prawn {

recording_header header_of_run(const sim_config& config) {
    recording_header h;
    h.prawn_version = PRAWN_VERSION;
    h.time_mode = config.time;
    h.nodes = config.fabric.nodes;
    h.config = effective_config(config);
    h.profile_name = std::filesystem::path(config.profile).stem().string();
    std::ifstream file(config.profile_path, std::ios::binary);
    h.profile_text.assign(std::istreambuf_iterator<char>(file), {});
    if (!file)
        throw std::runtime_error(config.profile_path +
                                 ": cannot be read: name another profile");
    h.profile_crc = crc32c(h.profile_text.data(), h.profile_text.size());
    return h;
}

run_recording::run_recording(const std::string& path,
                             const sim_config& config) :
    m_file(path, header_of_run(config)) {
    for (unsigned k = 0; k < config.fabric.nodes; k++)
        m_recorders.push_back(std::make_unique<recorder>(
            ("recorder" + std::to_string(k)).c_str(), k, m_file, [this] {
                if (written)
                    written();
            }));
}

void run_recording::finish() {
    m_file.finish(now_ps());
}

}  // namespace prawn
