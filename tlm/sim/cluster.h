// SPDX-License-Identifier: Apache-2.0
// The whole model: nodes and the fabric between them.

#ifndef PRAWN_SIM_CLUSTER_H
#define PRAWN_SIM_CLUSTER_H

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <systemc>

#include "fabric/fabric.h"
#include "sim/config.h"
#include "sim/node.h"

namespace prawn {

class cluster final : public sc_core::sc_module
{
public:
    // events may be null. Throws std::invalid_argument or config_error if the
    // configuration makes no sense.
    cluster(sc_core::sc_module_name name, const sim_config& config,
            event_log* events = nullptr);

    unsigned nodes() const { return static_cast<unsigned>(m_nodes.size()); }
    node& at(unsigned k) { return *m_nodes[k]; }
    const timing_profile& profile() const { return m_profile; }

    // Counters of all nodes and of the fabric, for people and for programs:
    // {"time_ps": …, "profile": …, "skew": …,
    //  "nodes": [{"global": …, "contexts": …}, …], "fabric": {…}}
    // skew: what kept guests and model from being exactly in step, if anything.
    void write_table(std::ostream& out) const;
    void write_json(std::ostream& out, const std::string& skew = "") const;
    // DMA outside of the grants, one line each; empty without a checker.
    std::vector<std::string> failures() const;

private:
    const timing_profile m_profile;
    counter_registry m_fabric_counters;
    std::unique_ptr<fabric> m_fabric;
    std::vector<std::unique_ptr<node>> m_nodes;
};

}  // namespace prawn

#endif
