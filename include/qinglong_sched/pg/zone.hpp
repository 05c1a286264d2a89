#pragma once
// Time zones: PostgreSQL's own database, handed to the pure engine as plain spans.

#include "qinglong_sched/core/zone_spans.hpp"
#include "qinglong_sched/pg/pg.hpp"

namespace qinglong::pg {

// The zone of that IANA name, from a cache that lives as long as the backend; nothing when there is none.
// The name must be in the catalogue's own spelling.
std::optional<core::ZoneView> find_zone(const std::string& name);

// What tells the data of a zone from any other data of it, in 16 hexadecimal digits; nothing where
// find_zone() finds nothing.
std::optional<std::string> zone_fingerprint(const std::string& name);

// A mark on a zone for the life of the backend, for its user.
bool zone_is_noted(const std::string& name);
void note_zone(const std::string& name);

// The catalogue's spelling of a name given in any case; throws SqlError 22023 with the nearest name as a hint
// when it is no IANA name of this server.
std::string canonical_zone_name(const std::string& name);

} // namespace qinglong::pg
