#pragma once

namespace qinglong::worker {

// Commands that need a database without connections get it without workers; from _PG_init, at preload.
void install_database_commands();

} // namespace qinglong::worker
