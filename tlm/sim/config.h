// SPDX-License-Identifier: Apache-2.0
// Configuration of a simulation: one TOML file and changes from the command
// line. examples/two-nodes.toml names every key with its default.

#ifndef PRAWN_SIM_CONFIG_H
#define PRAWN_SIM_CONFIG_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "host/host_bus.h"
#include "nic/nic.h"
#include "trace/observation.h"

namespace prawn {

// What is wrong, where, and the mend; one line.
class config_error : public std::runtime_error
{
public:
    using std::runtime_error::runtime_error;
};

struct node_config {
    std::string socket;  // empty: RUN_DIR/node<k>.sock
};

struct sim_config {
    std::string time = "free-running";
    std::uint64_t quantum_ns = 1000;    // synchronized: a guest's lead
    std::string profile = "pcie-gen3";  // name or path as it was given
    std::string engine = "hardwired";
    bool checker = false;  // compare every DMA with the kernel's grants

    fabric_config fabric;
    host_bus_config host;
    nic_config nic;
    trace_files trace;
    std::vector<node_config> nodes;  // as many as there are nodes

    std::string profile_path;  // of the file
    std::string profile_text;  // if not empty: instead of the file
};

// file empty: defaults only. changes: KEY=VALUE, later ones win. Throws
// config_error for unreadable files, unknown keys, values out of range or not
// available in this version.
sim_config load_config(const std::string& file,
                       const std::vector<std::string>& changes = {});

// KEY=VALUE of every key, as load_config("", ...) takes them, for a run that is
// to be the same elsewhere: without the profile, which is a file, and without
// this run's own files and sockets (trace.*, node.*).
std::vector<std::string> effective_config(const sim_config& config);

// Every key that there is, for tests and for --help.
std::vector<std::string> config_keys();

}  // namespace prawn

#endif
